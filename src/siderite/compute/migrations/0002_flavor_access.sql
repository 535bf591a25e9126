CREATE TABLE flavor_access (
  flavor TEXT NOT NULL,
  project_id TEXT NOT NULL
);
CREATE UNIQUE INDEX flavor_access_key ON flavor_access (flavor, project_id);
