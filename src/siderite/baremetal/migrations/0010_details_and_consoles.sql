-- What is known of a machine beside its node: inventory, BIOS settings, firmware.
CREATE TABLE node_details (
  node_uuid TEXT NOT NULL,
  kind TEXT NOT NULL,
  doc TEXT NOT NULL,
  PRIMARY KEY (node_uuid, kind)
);
-- Consoles that are on. `home` is the process that carries it, '' while none does.
CREATE TABLE consoles (
  node_uuid TEXT PRIMARY KEY,
  home TEXT NOT NULL,
  type TEXT,
  url TEXT
);
CREATE INDEX consoles_home ON consoles (home);
CREATE TABLE console_homes (
  home TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  pid {bigint} NOT NULL,
  seen {real} NOT NULL
);
