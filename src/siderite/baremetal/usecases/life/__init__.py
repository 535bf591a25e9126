"""Verbs, the work that follows, and who has a say in it."""
