-- What the log last said of each resource, and the words to find it by: on SQLite in an FTS5 table
-- whose rowid is the document's id.
CREATE TABLE search_docs (
  id {serial},
  type TEXT NOT NULL,
  uuid TEXT NOT NULL,
  project TEXT,
  seq {bigint} NOT NULL,
  at {real} NOT NULL,
--postgresql   words TSVECTOR NOT NULL,
  doc TEXT NOT NULL
);
CREATE UNIQUE INDEX search_docs_uuid_key ON search_docs (uuid, type);
CREATE INDEX search_docs_type ON search_docs (type, id);
--sqlite CREATE VIRTUAL TABLE search_words USING fts5(words, detail='none', columnsize=0);
--postgresql CREATE INDEX search_docs_words ON search_docs USING gin (words);
