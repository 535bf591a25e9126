"""Servers, and what hangs below one."""
