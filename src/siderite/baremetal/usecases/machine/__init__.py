"""What is asked of the machine itself beside power."""
