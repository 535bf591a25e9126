"""What operators see of hosts, and what other services tell."""
