-- Who made a fact true, where that was a request: its work carries the request's id only.
ALTER TABLE events ADD COLUMN actor TEXT;
ALTER TABLE events ADD COLUMN actor_project TEXT;
