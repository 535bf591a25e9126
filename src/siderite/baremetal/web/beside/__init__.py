"""What is kept beside nodes."""
