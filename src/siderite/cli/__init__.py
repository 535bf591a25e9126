"""The operator's hand. Commands talk HTTP; only `up` starts the service. Imports are lazy: see
main.
"""
