CREATE TABLE nodes (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  name TEXT,
  driver TEXT NOT NULL,
  provision_state TEXT,
  target_provision_state TEXT,
  power_state TEXT,
  instance_uuid TEXT,
  instance_name TEXT,
  maintenance {bigint} NOT NULL,
  resource_class TEXT,
  fault TEXT,
  conductor_group TEXT NOT NULL,
  conductor TEXT,
  owner TEXT,
  lessee TEXT,
  retired {bigint} NOT NULL,
  shard TEXT,
  parent_node TEXT,
  chassis_uuid TEXT,
  description TEXT,
  updated_at TEXT,
  created_at TEXT NOT NULL,
  provision_updated_at TEXT,
  -- The large ones come last: a scan by the others does not have to read past them.
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX nodes_uuid_key ON nodes (uuid);
CREATE UNIQUE INDEX nodes_name_key ON nodes (name) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX nodes_instance_uuid_key ON nodes (instance_uuid) WHERE instance_uuid IS NOT NULL;
CREATE INDEX nodes_provision_state ON nodes (provision_state, id);
CREATE INDEX nodes_driver ON nodes (driver, id);
CREATE INDEX nodes_resource_class ON nodes (resource_class, id);
CREATE INDEX nodes_conductor_group ON nodes (conductor_group, id);
CREATE INDEX nodes_shard ON nodes (shard, id) WHERE shard IS NOT NULL;
CREATE INDEX nodes_chassis ON nodes (chassis_uuid, id) WHERE chassis_uuid IS NOT NULL;
CREATE INDEX nodes_fault ON nodes (fault, id) WHERE fault IS NOT NULL;
CREATE INDEX nodes_lessee ON nodes (lessee, id) WHERE lessee IS NOT NULL;
CREATE INDEX nodes_owner ON nodes (owner, id) WHERE owner IS NOT NULL;
CREATE INDEX nodes_parent ON nodes (parent_node) WHERE parent_node IS NOT NULL;
CREATE INDEX nodes_maintenance ON nodes (id) WHERE maintenance = 1;
