CREATE TABLE hooks (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  name TEXT NOT NULL,
  state TEXT,
  step TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT,
  doc TEXT NOT NULL,
  body TEXT NOT NULL
);
CREATE UNIQUE INDEX hooks_uuid_key ON hooks (uuid);
CREATE UNIQUE INDEX hooks_name_key ON hooks (name);
