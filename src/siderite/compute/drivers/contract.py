"""What a driver is."""
