-- How far each durable reader of the log is, and what keeps it. lost counts facts that were pruned
-- before it read them.
CREATE TABLE event_followers (
  name TEXT PRIMARY KEY,
  seq {bigint} NOT NULL,
  lost {bigint} NOT NULL DEFAULT 0,
  problem TEXT,
  at {real} NOT NULL
);
