"""Nodes, and what hangs below one."""
