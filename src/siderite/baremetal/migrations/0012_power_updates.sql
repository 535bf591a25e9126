-- What a compute service has yet to be told of nodes' power, in this order for each node.
CREATE TABLE power_updates (
  id {serial},
  node TEXT NOT NULL,
  server TEXT NOT NULL,
  tag TEXT NOT NULL,
  at {real} NOT NULL,
  request_id TEXT
);
CREATE INDEX power_updates_node ON power_updates (node, id);
