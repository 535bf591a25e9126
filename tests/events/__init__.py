"""The ways out of the event log, on both databases."""
