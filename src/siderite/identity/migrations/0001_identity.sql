-- Users and projects are whole values (core/store/table.py); roles and the one domain are a table in
-- the program (domain.py), since policies know them by name.
CREATE TABLE identity_projects (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  name TEXT NOT NULL,
  enabled {bigint} NOT NULL
);
CREATE UNIQUE INDEX identity_projects_uuid_key ON identity_projects (uuid);
CREATE UNIQUE INDEX identity_projects_name_key ON identity_projects (name, domain_id);

CREATE TABLE identity_users (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL,
  domain_id TEXT NOT NULL,
  name TEXT NOT NULL,
  enabled {bigint} NOT NULL,
  epoch {bigint} NOT NULL
);
CREATE UNIQUE INDEX identity_users_uuid_key ON identity_users (uuid);
CREATE UNIQUE INDEX identity_users_name_key ON identity_users (name, domain_id);

-- Who has which role where; kind is project, domain or system.
CREATE TABLE identity_grants (
  user_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  target_id TEXT NOT NULL,
  role TEXT NOT NULL,
  PRIMARY KEY (user_id, kind, target_id, role)
);
CREATE INDEX identity_grants_target ON identity_grants (kind, target_id);

-- A token is kept as its hash. It is good while its user's epoch is the one it was issued in.
CREATE TABLE identity_tokens (
  hash TEXT PRIMARY KEY,
  user_id TEXT NOT NULL,
  epoch {bigint} NOT NULL,
  kind TEXT NOT NULL,
  target_id TEXT NOT NULL,
  methods TEXT NOT NULL,
  audit_ids TEXT NOT NULL,
  issued_at {real} NOT NULL,
  expires_at {real} NOT NULL
);
CREATE INDEX identity_tokens_user ON identity_tokens (user_id);
CREATE INDEX identity_tokens_expiry ON identity_tokens (expires_at);
