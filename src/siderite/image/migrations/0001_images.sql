-- An image is a whole value (core/store/table.py); its data is a file, which `doc` names.
CREATE TABLE images (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL,
  name TEXT,
  status TEXT NOT NULL,
  visibility TEXT NOT NULL,
  owner TEXT,
  protected {bigint} NOT NULL,
  os_hidden {bigint} NOT NULL,
  container_format TEXT,
  disk_format TEXT,
  min_disk {bigint} NOT NULL,
  min_ram {bigint} NOT NULL,
  size {bigint},
  checksum TEXT,
  os_hash_value TEXT,
  file TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
);
CREATE UNIQUE INDEX images_uuid_key ON images (uuid);
CREATE INDEX images_owner ON images (owner);
CREATE INDEX images_visibility ON images (visibility);
CREATE INDEX images_name ON images (name);
CREATE INDEX images_file ON images (file);
CREATE INDEX images_created_at ON images (created_at, id);

-- Projects that a shared image is offered to; status is pending, accepted or rejected.
CREATE TABLE image_members (
  image_id TEXT NOT NULL,
  member_id TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (image_id, member_id)
);
CREATE INDEX image_members_member ON image_members (member_id, status);
