CREATE TABLE servers (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  project_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  name TEXT NOT NULL,
  description TEXT,
  hostname TEXT,
  vm_state TEXT NOT NULL,
  task_state TEXT,
  power_state {bigint} NOT NULL,
  progress {bigint} NOT NULL,
  host TEXT,
  node TEXT,
  availability_zone TEXT,
  flavor_id TEXT NOT NULL,
  image_id TEXT,
  key_name TEXT,
  group_uuid TEXT,
  reservation_id TEXT NOT NULL,
  launch_index {bigint} NOT NULL,
  config_drive {bigint} NOT NULL,
  locked_by TEXT,
  access_ip_v4 TEXT,
  access_ip_v6 TEXT,
  root_device_name TEXT,
  tag_text TEXT NOT NULL,
  addresses_text TEXT NOT NULL,
  vcpus {bigint} NOT NULL,
  ram_mib {bigint} NOT NULL,
  deleted {bigint} NOT NULL,
  created_at TEXT NOT NULL,
  changed_at TEXT NOT NULL,
  launched_at TEXT,
  terminated_at TEXT,
  -- The large ones come last, first what lists show: a scan does not have to read past the others.
  body TEXT NOT NULL,
  doc TEXT NOT NULL
);
CREATE UNIQUE INDEX servers_uuid_key ON servers (uuid);
CREATE INDEX servers_project ON servers (project_id, deleted, id);
CREATE INDEX servers_live ON servers (deleted, id);
CREATE INDEX servers_host ON servers (host, deleted) WHERE host IS NOT NULL;
CREATE INDEX servers_group ON servers (group_uuid) WHERE group_uuid IS NOT NULL;
CREATE INDEX servers_flavor ON servers (flavor_id, deleted, id);
CREATE INDEX servers_pending ON servers (id) WHERE vm_state = 'pending';
CREATE INDEX servers_gone ON servers (terminated_at) WHERE deleted = 1;

CREATE TABLE flavors (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  flavorid TEXT NOT NULL,
  name TEXT NOT NULL,
  vcpus {bigint} NOT NULL,
  ram_mib {bigint} NOT NULL,
  disk_gib {bigint} NOT NULL,
  is_public {bigint} NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX flavors_uuid_key ON flavors (uuid);
CREATE UNIQUE INDEX flavors_flavorid_key ON flavors (flavorid);
CREATE UNIQUE INDEX flavors_name_key ON flavors (name);

CREATE TABLE hosts (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  name TEXT NOT NULL,
  driver TEXT NOT NULL,
  disabled {bigint} NOT NULL,
  disabled_reason TEXT,
  forced_down {bigint} NOT NULL,
  -- When it last answered; written without a new version.
  seen_at {real} NOT NULL DEFAULT 0,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX hosts_uuid_key ON hosts (uuid);
CREATE UNIQUE INDEX hosts_name_key ON hosts (name);

-- What hosts offer. A claim is a conditional update of the used columns: it cannot overcommit.
CREATE TABLE hypervisors (
  id {serial},
  uuid TEXT NOT NULL,
  host TEXT NOT NULL,
  node TEXT NOT NULL,
  type TEXT NOT NULL,
  version {bigint} NOT NULL,
  address TEXT NOT NULL,
  cpu_info TEXT NOT NULL,
  resource_class TEXT,
  traits TEXT NOT NULL,
  vcpus {bigint} NOT NULL,
  ram_mib {bigint} NOT NULL,
  disk_gib {bigint} NOT NULL,
  vcpus_limit {bigint} NOT NULL,
  ram_limit {bigint} NOT NULL,
  disk_limit {bigint} NOT NULL,
  vcpus_used {bigint} NOT NULL DEFAULT 0,
  ram_used {bigint} NOT NULL DEFAULT 0,
  disk_used {bigint} NOT NULL DEFAULT 0,
  servers {bigint} NOT NULL DEFAULT 0,
  -- How many servers it takes: 1 for bare metal.
  servers_limit {bigint} NOT NULL,
  is_available {bigint} NOT NULL,
  why_not TEXT
);
CREATE UNIQUE INDEX hypervisors_uuid_key ON hypervisors (uuid);
CREATE UNIQUE INDEX hypervisors_node_key ON hypervisors (host, node);
CREATE INDEX hypervisors_class ON hypervisors (resource_class);

-- A server has one claim, and a second while it is on its way to another place or size.
CREATE TABLE claims (
  id {serial},
  server TEXT NOT NULL,
  slot TEXT NOT NULL,
  host TEXT NOT NULL,
  node TEXT NOT NULL,
  vcpus {bigint} NOT NULL,
  ram_mib {bigint} NOT NULL,
  disk_gib {bigint} NOT NULL
);
CREATE UNIQUE INDEX claims_server_key ON claims (server, slot);

-- What a project's servers add up to, for its quota.
CREATE TABLE project_usage (
  project_id TEXT PRIMARY KEY,
  instances {bigint} NOT NULL,
  cores {bigint} NOT NULL,
  ram_mib {bigint} NOT NULL
);

CREATE TABLE addresses (
  network TEXT NOT NULL,
  address TEXT NOT NULL,
  server TEXT NOT NULL
);
CREATE UNIQUE INDEX addresses_key ON addresses (network, address);
CREATE INDEX addresses_server ON addresses (server);

CREATE TABLE instance_actions (
  id {serial},
  server TEXT NOT NULL,
  request_id TEXT NOT NULL,
  action TEXT NOT NULL,
  user_id TEXT,
  project_id TEXT,
  started_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  message TEXT,
  events TEXT NOT NULL
);
CREATE INDEX instance_actions_server ON instance_actions (server, id);
CREATE INDEX instance_actions_request ON instance_actions (server, request_id);

CREATE TABLE server_migrations (
  id {serial},
  uuid TEXT NOT NULL,
  server TEXT NOT NULL,
  project_id TEXT,
  user_id TEXT,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  source_host TEXT NOT NULL,
  source_node TEXT NOT NULL,
  target_host TEXT,
  target_node TEXT,
  old_flavor TEXT,
  new_flavor TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE UNIQUE INDEX server_migrations_uuid_key ON server_migrations (uuid);
CREATE INDEX server_migrations_server ON server_migrations (server, id);
