-- Only workers of its conductor group act on a host; '' is none: all do.
ALTER TABLE hosts ADD COLUMN conductor_group TEXT NOT NULL DEFAULT '';
