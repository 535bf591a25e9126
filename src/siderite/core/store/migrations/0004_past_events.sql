-- Facts that have left the log, but are still history of what they are about.
CREATE TABLE past_events (
  seq {bigint} PRIMARY KEY,
  message_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  at {real} NOT NULL,
  publisher_id TEXT NOT NULL,
  priority TEXT NOT NULL,
  request_id TEXT,
  resource_type TEXT NOT NULL,
  resource TEXT NOT NULL,
  project TEXT,
  payload TEXT NOT NULL,
  actor TEXT,
  actor_project TEXT
);
CREATE INDEX past_events_resource ON past_events (resource, seq);
