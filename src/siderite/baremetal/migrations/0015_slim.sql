-- All that lists filter and sort by, apart from the documents: what no index of its own finds is
-- looked for here, and not in rows of some kilobytes each. PostgreSQL keeps large values apart anyway.
--sqlite CREATE INDEX nodes_slim ON nodes (id, parent_node, uuid, name, driver, provision_state, target_provision_state, power_state, instance_uuid, instance_name, maintenance, resource_class, fault, conductor_group, conductor, owner, lessee, retired, shard, chassis_uuid, description, updated_at, created_at, provision_updated_at);
CREATE INDEX nodes_instance_name ON nodes (instance_name) WHERE instance_name IS NOT NULL;
CREATE INDEX nodes_by_age ON nodes (created_at, id);
CREATE INDEX nodes_conductor ON nodes (conductor, id) WHERE conductor IS NOT NULL;
