"""What belongs to projects and their users."""
