"""What machines and outside services say: agents, firmware, hooks, networks."""
