"""Machinery that knows neither servers nor nodes: machines, the one door, the store, work, HTTP."""
