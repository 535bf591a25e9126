-- Which portgroup a port is in: a column, to find the ports of one. Nothing had one before.
ALTER TABLE ports ADD COLUMN portgroup_uuid TEXT;
CREATE INDEX ports_portgroup ON ports (portgroup_uuid, id) WHERE portgroup_uuid IS NOT NULL;
CREATE TABLE portgroups (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  node_uuid TEXT NOT NULL,
  address TEXT,
  name TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX portgroups_uuid_key ON portgroups (uuid);
CREATE UNIQUE INDEX portgroups_address_key ON portgroups (address) WHERE address IS NOT NULL;
CREATE UNIQUE INDEX portgroups_name_key ON portgroups (name) WHERE name IS NOT NULL;
CREATE INDEX portgroups_node ON portgroups (node_uuid, id);
CREATE TABLE volume_connectors (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  node_uuid TEXT NOT NULL,
  type TEXT NOT NULL,
  connector_id TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX volume_connectors_uuid_key ON volume_connectors (uuid);
CREATE UNIQUE INDEX volume_connectors_connector_id_key ON volume_connectors (connector_id, type);
CREATE INDEX volume_connectors_node ON volume_connectors (node_uuid, id);
CREATE TABLE volume_targets (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  node_uuid TEXT NOT NULL,
  volume_type TEXT NOT NULL,
  volume_id TEXT NOT NULL,
  boot_index {bigint} NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX volume_targets_uuid_key ON volume_targets (uuid);
CREATE UNIQUE INDEX volume_targets_boot_index_key ON volume_targets (boot_index, node_uuid);
CREATE INDEX volume_targets_node ON volume_targets (node_uuid, id);
CREATE TABLE deploy_templates (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  name TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX deploy_templates_uuid_key ON deploy_templates (uuid);
CREATE UNIQUE INDEX deploy_templates_name_key ON deploy_templates (name);
CREATE TABLE runbooks (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  name TEXT NOT NULL,
  public {bigint} NOT NULL,
  owner TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX runbooks_uuid_key ON runbooks (uuid);
CREATE UNIQUE INDEX runbooks_name_key ON runbooks (name);
CREATE TABLE inspection_rules (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  description TEXT,
  priority {bigint} NOT NULL,
  phase TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX inspection_rules_uuid_key ON inspection_rules (uuid);
CREATE TABLE allocations (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  name TEXT,
  node_uuid TEXT,
  state TEXT NOT NULL,
  resource_class TEXT,
  owner TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX allocations_uuid_key ON allocations (uuid);
CREATE UNIQUE INDEX allocations_name_key ON allocations (name) WHERE name IS NOT NULL;
CREATE UNIQUE INDEX allocations_node_uuid_key ON allocations (node_uuid) WHERE node_uuid IS NOT NULL;
-- What an allocation chooses from.
CREATE INDEX nodes_free ON nodes (resource_class, uuid)
  WHERE provision_state = 'available' AND instance_uuid IS NULL AND maintenance = 0;
-- The processes of the service that carry out work, as they say themselves now and then.
CREATE TABLE conductors (
  id {serial},
  hostname TEXT NOT NULL,
  conductor_group TEXT NOT NULL,
  drivers TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  seen_at {real} NOT NULL
);
CREATE UNIQUE INDEX conductors_hostname_key ON conductors (hostname);
