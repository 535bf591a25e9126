"""What is legal."""
