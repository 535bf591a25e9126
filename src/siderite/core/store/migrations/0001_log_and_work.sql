-- The event log. On PostgreSQL commits overtake each other, so rows get their place in the log
-- (seq) from one sequencer after they are committed; on SQLite the single writer gives it at once.
--sqlite CREATE TABLE events (seq INTEGER PRIMARY KEY AUTOINCREMENT,
--postgresql CREATE TABLE events (id BIGSERIAL PRIMARY KEY, seq BIGINT,
  message_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  at {real} NOT NULL,
  publisher_id TEXT NOT NULL,
  priority TEXT NOT NULL,
  request_id TEXT,
  resource_type TEXT NOT NULL,
  resource TEXT NOT NULL,
  project TEXT,
  payload TEXT NOT NULL
);
--postgresql CREATE UNIQUE INDEX events_seq_key ON events (seq);
--postgresql CREATE INDEX events_unplaced ON events (id) WHERE seq IS NULL;
--postgresql CREATE TABLE event_head (seq BIGINT NOT NULL);
--postgresql INSERT INTO event_head VALUES (0);
CREATE INDEX events_resource ON events (resource);

-- Durable work: at most one row per machine and lane; at most one leased row per machine.
CREATE TABLE work (
  id {serial},
  machine TEXT NOT NULL,
  lane TEXT NOT NULL,
  kind TEXT NOT NULL,
  job TEXT NOT NULL,
  due {real} NOT NULL,
  deadline {real} NOT NULL,
  reason TEXT,
  attempts {bigint} NOT NULL DEFAULT 0,
  owner TEXT,
  lease_until {real},
  fence {bigint} NOT NULL DEFAULT 0,
  created_at {real} NOT NULL,
  request_id TEXT
);
CREATE UNIQUE INDEX work_machine_lane_key ON work (machine, lane);
CREATE UNIQUE INDEX work_one_lease_key ON work (machine) WHERE owner IS NOT NULL;
CREATE INDEX work_due ON work (due);
