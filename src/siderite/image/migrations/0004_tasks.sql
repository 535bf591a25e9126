-- How the last import of an image goes, or went.
CREATE TABLE image_tasks (
  id {serial},
  uuid TEXT NOT NULL,
  version {bigint} NOT NULL,
  doc TEXT NOT NULL,
  body TEXT NOT NULL,
  image_id TEXT NOT NULL
);
CREATE UNIQUE INDEX image_tasks_uuid_key ON image_tasks (uuid);
CREATE INDEX image_tasks_image ON image_tasks (image_id);
