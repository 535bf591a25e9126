"""The bare metal API at its edge."""
