"""What projects and their users have, and may have."""
