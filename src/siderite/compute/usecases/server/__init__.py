"""A server's life, from its creation until it goes."""
