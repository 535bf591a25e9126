"""Servers, flavors, hosts and placement: the compute API."""
