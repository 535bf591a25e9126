"""Image records and their files."""
