"""Networks and ports in Neutron's manner."""
