"""Translate HTTP."""
