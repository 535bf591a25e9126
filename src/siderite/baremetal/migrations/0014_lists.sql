-- For lists by what had no index yet.
CREATE INDEX nodes_by_name ON nodes (COALESCE(name, ''), id);
CREATE INDEX nodes_associated ON nodes (id) WHERE instance_uuid IS NOT NULL;
CREATE INDEX nodes_unassociated ON nodes (id) WHERE instance_uuid IS NULL;
CREATE INDEX nodes_retired ON nodes (id) WHERE retired = 1;
CREATE INDEX allocations_state ON allocations (state, id);
CREATE INDEX allocations_resource_class ON allocations (resource_class, id);
CREATE INDEX allocations_owner ON allocations (owner, id) WHERE owner IS NOT NULL;
