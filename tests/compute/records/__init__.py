"""What servers refer to: keypairs, quotas, groups, aggregates, hosts."""
