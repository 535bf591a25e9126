CREATE TABLE keypairs (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  user_id TEXT NOT NULL,
  name TEXT NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX keypairs_uuid_key ON keypairs (uuid);
CREATE UNIQUE INDEX keypairs_name_key ON keypairs (user_id, name);

-- Limits that differ from the defaults; the project '' has what the defaults themselves are.
CREATE TABLE quota_limits (
  project_id TEXT NOT NULL,
  resource TEXT NOT NULL,
  value {bigint} NOT NULL,
  PRIMARY KEY (project_id, resource)
);

CREATE TABLE aggregates (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  name TEXT NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX aggregates_uuid_key ON aggregates (uuid);
CREATE UNIQUE INDEX aggregates_name_key ON aggregates (name);

CREATE TABLE server_groups (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  project_id TEXT NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX server_groups_uuid_key ON server_groups (uuid);
CREATE INDEX server_groups_project ON server_groups (project_id, id);

CREATE INDEX servers_launched ON servers (launched_at) WHERE launched_at IS NOT NULL;
