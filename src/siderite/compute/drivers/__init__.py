"""Hands on hypervisors."""
