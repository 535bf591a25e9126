"""The documentation: fresh, and with links that lead somewhere."""
