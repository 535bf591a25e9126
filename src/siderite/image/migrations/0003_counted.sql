-- How often data was added to a project's images: each addition counts what is there, and is lost if
-- another came in between.
CREATE TABLE image_additions (
  owner TEXT PRIMARY KEY,
  number {bigint} NOT NULL
);
