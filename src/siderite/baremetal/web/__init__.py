"""Translating: HTTP to commands, values to JSON. Version differences live here and nowhere else."""
