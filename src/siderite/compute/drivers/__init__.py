"""Doing it to hypervisors: drivers behind one contract."""
