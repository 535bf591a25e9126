-- How far each durable reader of the log is. One process at a time follows for a name: it has the
-- lease, and its fence stands in every commit. lost counts facts that were pruned before it read them.
CREATE TABLE event_followers (
  name TEXT PRIMARY KEY,
  seq {bigint} NOT NULL,
  lost {bigint} NOT NULL DEFAULT 0,
  problem TEXT,
  at {real} NOT NULL,
  owner TEXT,
  lease_until {real} NOT NULL DEFAULT 0,
  fence {bigint} NOT NULL DEFAULT 0
);
