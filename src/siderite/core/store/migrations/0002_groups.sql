-- Which workers may take a job: those of its group; NULL is for any.
ALTER TABLE work ADD COLUMN pool TEXT;
