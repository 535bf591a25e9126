-- For lists by what had no index yet.
CREATE INDEX servers_by_name ON servers (project_id, deleted, COALESCE(name, ''), id);
CREATE INDEX servers_by_age ON servers (project_id, deleted, COALESCE(created_at, ''), id);
