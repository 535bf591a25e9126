CREATE TABLE ports (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  node_uuid TEXT NOT NULL,
  address TEXT NOT NULL,
  name TEXT,
  description TEXT,
  physical_network TEXT,
  pxe_enabled {bigint} NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX ports_uuid_key ON ports (uuid);
CREATE UNIQUE INDEX ports_address_key ON ports (address);
CREATE UNIQUE INDEX ports_name_key ON ports (name) WHERE name IS NOT NULL;
CREATE INDEX ports_node ON ports (node_uuid, id);
CREATE TABLE chassis (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  description TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  -- Counts how often a node was put into it: whoever removes an empty chassis sees by it that one
  -- has come meanwhile. It is no part of the value, so nodes do not race each other for its version.
  taken {bigint} NOT NULL DEFAULT 0,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX chassis_uuid_key ON chassis (uuid);
