-- Room that others make on a node for a PENDING server: until then it is given to nobody else.
CREATE TABLE kept_room (
  server TEXT PRIMARY KEY,
  hypervisor TEXT NOT NULL,
  vcpus {bigint} NOT NULL,
  ram_mib {bigint} NOT NULL,
  disk_gib {bigint} NOT NULL,
  since TEXT NOT NULL,
  kept_until TEXT NOT NULL
);
