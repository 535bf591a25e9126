"""A node and what is known of it."""
