-- Every id that an image was ever given. Whoever has read an image's data under its id may keep it, as
-- hosts do, so that no other may have that id when the image is gone.
CREATE TABLE image_ids (uuid TEXT NOT NULL);
CREATE UNIQUE INDEX image_ids_uuid_key ON image_ids (uuid);
INSERT INTO image_ids SELECT uuid FROM images;
