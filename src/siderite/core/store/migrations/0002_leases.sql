-- Who does what only one process may do at a time, and until when.
CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  until {real} NOT NULL
);
