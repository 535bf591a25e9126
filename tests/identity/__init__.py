"""Identity: through its API, on both databases."""
