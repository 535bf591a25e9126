-- When each node's power is read next, and how often in a row it could not be. No part of the
-- node's value: a reading that finds nothing new changes nothing that anybody else waits for.
CREATE TABLE power_watch (
  node TEXT PRIMARY KEY,
  due {real} NOT NULL,
  pause {real} NOT NULL,
  failures {bigint} NOT NULL
);
CREATE INDEX power_watch_due ON power_watch (due);
INSERT INTO power_watch (node, due, pause, failures) SELECT uuid, 0, 0, 0 FROM nodes;
-- What version 1.900 shows besides comes last in the rendered text.
UPDATE nodes SET body = body || ',"power_policy":null,"power_state_reason":null';
