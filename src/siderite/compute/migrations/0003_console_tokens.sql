-- Ways to consoles that were given out. Only a digest is kept: who reads this table gets in nowhere.
CREATE TABLE console_tokens (
  digest TEXT PRIMARY KEY,
  server TEXT NOT NULL,
  protocol TEXT NOT NULL,
  expires {real} NOT NULL
);
CREATE INDEX console_tokens_expires ON console_tokens (expires);
