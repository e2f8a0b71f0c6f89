-- Tasks that other tasks have as root, in the order in which they were first seen, with counts of their tasks. A task counts
-- for the row whose root is coalesce(tasks.root, tasks.id), if there is one.
CREATE TABLE workflows (
	workflow INTEGER PRIMARY KEY AUTOINCREMENT,
	root     ANY NOT NULL UNIQUE, -- as tasks.id
	name     INTEGER,             -- symbol, of the root task; NULL if that is not stored
	tasks    INTEGER NOT NULL,
	ended    INTEGER NOT NULL,    -- final, lost or dismissed
	failed   INTEGER NOT NULL,    -- final = 2
	lost     INTEGER NOT NULL,
	first    INTEGER,             -- when the first was sent or else received, µs since 1970 UTC
	last     INTEGER              -- when the last ended
) STRICT;

INSERT INTO workflows (root, name, tasks, ended, failed, lost, first, last)
	SELECT m.root, r.name, m.tasks + (r.task IS NOT NULL),
		m.ended + ifnull(r.final <> 0 OR r.lost IS NOT NULL, 0), m.failed + ifnull(r.final = 2, 0),
		m.lost + ifnull(r.final = 0 AND r.lost IS NOT NULL AND r.flags & 64 = 0, 0),
		min(ifnull(m.first, coalesce(r.sent, r.received, r.started)), ifnull(coalesce(r.sent, r.received, r.started), m.first)),
		max(ifnull(m.last, r.finished), ifnull(r.finished, m.last))
	FROM (
		SELECT root, min(clock) AS clock, count(*) AS tasks, sum(final <> 0 OR lost IS NOT NULL) AS ended, sum(final = 2) AS failed,
			sum(final = 0 AND lost IS NOT NULL AND flags & 64 = 0) AS lost, min(coalesce(sent, received, started)) AS first,
			max(finished) AS last
		FROM tasks WHERE root IS NOT NULL GROUP BY root
	) m LEFT JOIN tasks r ON r.id = m.root AND r.root IS NULL
	ORDER BY m.clock;

CREATE INDEX workflows_by_name ON workflows (name) WHERE name IS NOT NULL;
CREATE INDEX workflows_running ON workflows (workflow) WHERE ended < tasks;
CREATE INDEX workflows_failed ON workflows (workflow) WHERE failed > 0;
CREATE INDEX workflows_lost ON workflows (workflow) WHERE lost > 0;

CREATE TRIGGER workflow_task_added AFTER INSERT ON tasks BEGIN
	INSERT INTO workflows (root, name, tasks, ended, failed, lost, first, last)
		SELECT NEW.root, r.name, r.task IS NOT NULL, ifnull(r.final <> 0 OR r.lost IS NOT NULL, 0), ifnull(r.final = 2, 0),
			ifnull(r.final = 0 AND r.lost IS NOT NULL AND r.flags & 64 = 0, 0), coalesce(r.sent, r.received, r.started), r.finished
		FROM (SELECT 1) LEFT JOIN tasks r ON r.id = NEW.root AND r.root IS NULL
		WHERE NEW.root IS NOT NULL AND NOT EXISTS (SELECT 1 FROM workflows WHERE root = NEW.root);
	UPDATE workflows SET name = iif(NEW.root IS NULL, NEW.name, name), tasks = tasks + 1,
		ended = ended + (NEW.final <> 0 OR NEW.lost IS NOT NULL), failed = failed + (NEW.final = 2),
		lost = lost + (NEW.final = 0 AND NEW.lost IS NOT NULL AND NEW.flags & 64 = 0),
		first = min(ifnull(first, coalesce(NEW.sent, NEW.received, NEW.started)), ifnull(coalesce(NEW.sent, NEW.received, NEW.started), first)),
		last = max(ifnull(last, NEW.finished), ifnull(NEW.finished, last))
		WHERE root = coalesce(NEW.root, NEW.id);
END;

CREATE TRIGGER workflow_task_removed AFTER DELETE ON tasks BEGIN
	UPDATE workflows SET name = iif(OLD.root IS NULL, NULL, name), tasks = tasks - 1,
		ended = ended - (OLD.final <> 0 OR OLD.lost IS NOT NULL), failed = failed - (OLD.final = 2),
		lost = lost - (OLD.final = 0 AND OLD.lost IS NOT NULL AND OLD.flags & 64 = 0)
		WHERE root = coalesce(OLD.root, OLD.id);
	DELETE FROM workflows WHERE root = coalesce(OLD.root, OLD.id) AND tasks <= 0;
END;

-- A task that stays in its workflow.
CREATE TRIGGER workflow_task_changed AFTER UPDATE ON tasks WHEN NEW.root IS OLD.root AND (
	NEW.final <> OLD.final OR NEW.lost IS NOT OLD.lost OR NEW.flags <> OLD.flags OR NEW.name IS NOT OLD.name OR NEW.sent IS NOT OLD.sent
	OR NEW.received IS NOT OLD.received OR NEW.started IS NOT OLD.started OR NEW.finished IS NOT OLD.finished)
BEGIN
	UPDATE workflows SET name = iif(NEW.root IS NULL, NEW.name, name),
		ended = ended + (NEW.final <> 0 OR NEW.lost IS NOT NULL) - (OLD.final <> 0 OR OLD.lost IS NOT NULL),
		failed = failed + (NEW.final = 2) - (OLD.final = 2),
		lost = lost + (NEW.final = 0 AND NEW.lost IS NOT NULL AND NEW.flags & 64 = 0)
			- (OLD.final = 0 AND OLD.lost IS NOT NULL AND OLD.flags & 64 = 0),
		first = min(ifnull(first, coalesce(NEW.sent, NEW.received, NEW.started)), ifnull(coalesce(NEW.sent, NEW.received, NEW.started), first)),
		last = max(ifnull(last, NEW.finished), ifnull(NEW.finished, last))
		WHERE root = coalesce(NEW.root, NEW.id);
END;

-- A task whose root becomes known.
CREATE TRIGGER workflow_task_moved AFTER UPDATE ON tasks WHEN NEW.root IS NOT OLD.root BEGIN
	UPDATE workflows SET name = iif(OLD.root IS NULL, NULL, name), tasks = tasks - 1,
		ended = ended - (OLD.final <> 0 OR OLD.lost IS NOT NULL), failed = failed - (OLD.final = 2),
		lost = lost - (OLD.final = 0 AND OLD.lost IS NOT NULL AND OLD.flags & 64 = 0)
		WHERE root = coalesce(OLD.root, OLD.id);
	DELETE FROM workflows WHERE root = coalesce(OLD.root, OLD.id) AND tasks <= 0;
	INSERT INTO workflows (root, name, tasks, ended, failed, lost, first, last)
		SELECT NEW.root, r.name, r.task IS NOT NULL, ifnull(r.final <> 0 OR r.lost IS NOT NULL, 0), ifnull(r.final = 2, 0),
			ifnull(r.final = 0 AND r.lost IS NOT NULL AND r.flags & 64 = 0, 0), coalesce(r.sent, r.received, r.started), r.finished
		FROM (SELECT 1) LEFT JOIN tasks r ON r.id = NEW.root AND r.root IS NULL
		WHERE NEW.root IS NOT NULL AND NOT EXISTS (SELECT 1 FROM workflows WHERE root = NEW.root);
	UPDATE workflows SET name = iif(NEW.root IS NULL, NEW.name, name), tasks = tasks + 1,
		ended = ended + (NEW.final <> 0 OR NEW.lost IS NOT NULL), failed = failed + (NEW.final = 2),
		lost = lost + (NEW.final = 0 AND NEW.lost IS NOT NULL AND NEW.flags & 64 = 0),
		first = min(ifnull(first, coalesce(NEW.sent, NEW.received, NEW.started)), ifnull(coalesce(NEW.sent, NEW.received, NEW.started), first)),
		last = max(ifnull(last, NEW.finished), ifnull(NEW.finished, last))
		WHERE root = coalesce(NEW.root, NEW.id);
END;
