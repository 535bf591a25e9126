-- The index leaves out what a later fact says anew. Until it is at owed, it is current to known_to
-- only.
CREATE TABLE search_owed (
  known_to {bigint} NOT NULL,
  owed {bigint} NOT NULL
);
INSERT INTO search_owed (known_to, owed) VALUES (0, 0);
