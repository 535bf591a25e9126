"""Real, unmodified clients against the real program. A client that is missing is a failure."""
