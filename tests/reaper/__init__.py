"""The reaper: what it chooses, and what becomes of a full cloud."""
