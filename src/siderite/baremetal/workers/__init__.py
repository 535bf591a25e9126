"""Carrying on: durable work is taken up here, drivers are called, and outcomes are reported to
usecases.
"""
