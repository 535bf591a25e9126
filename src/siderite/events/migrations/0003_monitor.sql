-- What the log says of operations: how many began and how they ended, and those that are under way.
CREATE TABLE event_operations (
  operation TEXT PRIMARY KEY,
  started {bigint} NOT NULL,
  ended {bigint} NOT NULL,
  failed {bigint} NOT NULL,
  succeeded {bigint} NOT NULL,
  abandoned {bigint} NOT NULL
);
CREATE TABLE event_open (
  operation TEXT NOT NULL,
  resource TEXT NOT NULL,
  resource_type TEXT NOT NULL,
  seq {bigint} NOT NULL,
  began {real} NOT NULL,
  seen {real} NOT NULL,
  request_id TEXT,
  PRIMARY KEY (resource, operation)
);
CREATE INDEX event_open_seen ON event_open (seen);
