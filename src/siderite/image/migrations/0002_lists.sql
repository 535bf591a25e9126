-- The order in which images are listed.
CREATE INDEX images_by_age ON images (COALESCE(created_at, ''), uuid);
