"""Carry on what was begun."""
