-- What retention removes first, class by class. A class is final = 1 or 2.
CREATE INDEX tasks_by_end ON tasks (final, coalesce(finished, updated));

-- The last task of each class, in that order, whose events were thinned.
CREATE TABLE thinned (
	final INTEGER PRIMARY KEY,
	ended INTEGER NOT NULL,
	task  INTEGER NOT NULL
) STRICT;

-- FTS5 would merge away what was deleted within the commit that deletes, which then takes seconds. Retention does
-- it in small steps instead.
INSERT INTO texts (texts, rank) VALUES ('deletemerge', 0);
