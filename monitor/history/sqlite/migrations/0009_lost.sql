-- When an unfinished task was concluded to be lost, or dismissed, µs since 1970 UTC; NULL if it was not.
ALTER TABLE tasks ADD COLUMN lost INTEGER;
CREATE INDEX tasks_lost ON tasks (lost) WHERE lost IS NOT NULL;
