-- Nodes that may take a server, the emptiest of each kind first: a place is found without a look at
-- all of them. The database keeps it, whatever process writes.
CREATE INDEX hypervisors_room ON hypervisors (
  COALESCE(resource_class, ''),
  (COALESCE(CAST(vcpus_limit - vcpus_used AS DOUBLE PRECISION) / NULLIF(vcpus_limit, 0), 0)
    + COALESCE(CAST(ram_limit - ram_used AS DOUBLE PRECISION) / NULLIF(ram_limit, 0), 0)
    + COALESCE(CAST(disk_limit - disk_used AS DOUBLE PRECISION) / NULLIF(disk_limit, 0), 0)) DESC,
  id
) WHERE is_available = 1 AND servers < servers_limit;
CREATE INDEX hypervisors_node ON hypervisors (node);
