"""The rooms, joined."""
