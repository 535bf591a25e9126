"""Deciding and recording: each function reads, decides by the domain, and commits once.

No driver is called here and nothing waits: what must be done to hardware becomes work.
"""
