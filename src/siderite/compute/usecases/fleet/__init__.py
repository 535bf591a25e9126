"""Hosts, what they offer and how they are asked."""
