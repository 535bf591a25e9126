"""Tests of the bare metal service."""
