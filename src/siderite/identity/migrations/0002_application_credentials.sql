-- A credential is good for one project and some roles; a token that it gave names it, and ends with it.
CREATE TABLE identity_credentials (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL,
  user_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  name TEXT NOT NULL,
  role_text TEXT NOT NULL,
  unrestricted {bigint} NOT NULL
);
CREATE UNIQUE INDEX identity_credentials_uuid_key ON identity_credentials (uuid);
CREATE UNIQUE INDEX identity_credentials_name_key ON identity_credentials (user_id, name);
ALTER TABLE identity_tokens ADD COLUMN credential TEXT;
