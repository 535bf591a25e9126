"""Doing things to hardware. `contract` says what a driver is; each other module is one kind of
hardware.
"""
