-- Subscriptions: whole values (core/store/table.py).
CREATE TABLE webhooks (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL,
  owner TEXT,
  enabled {bigint} NOT NULL
);
CREATE UNIQUE INDEX webhooks_uuid_key ON webhooks (uuid);

-- How far the log has been looked through for each: no part of the value, since it changes all the time.
CREATE TABLE webhook_places (
  webhook TEXT PRIMARY KEY,
  seq {bigint} NOT NULL,
  lost {bigint} NOT NULL DEFAULT 0
);

-- What is to be delivered, has been, or was given up. event is kept only of what was given up: all
-- else is read from the log.
CREATE TABLE webhook_deliveries (
  id {serial},
  webhook TEXT NOT NULL,
  seq {bigint} NOT NULL,
  message_id TEXT NOT NULL,
  event_type TEXT NOT NULL,
  resource TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts {bigint} NOT NULL,
  due {real} NOT NULL,
  since {real} NOT NULL,
  at {real},
  status {bigint},
  error TEXT,
  event TEXT
);
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook, id);
CREATE INDEX webhook_deliveries_dead ON webhook_deliveries (webhook, id) WHERE state = 'dead';
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (webhook, resource, id)
  WHERE state = 'pending';
