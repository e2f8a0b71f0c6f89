-- Digest of the name and the arguments of a task (state.CallID): x'00' if the arguments are not known as a whole, NULL if
-- nothing has looked at the task yet.
ALTER TABLE tasks ADD COLUMN call BLOB;
-- In which ways it repeats work (state.Duplicates).
ALTER TABLE tasks ADD COLUMN dup INTEGER NOT NULL DEFAULT 0;

-- It does not end in clock, so that it changes but once in the life of a task.
CREATE INDEX tasks_by_call ON tasks (call) WHERE call > x'00';
CREATE INDEX tasks_by_dup ON tasks (dup, clock) WHERE dup <> 0;

-- Calls of two tasks or more, and single tasks that were redelivered or sent twice.
CREATE TABLE duplicates (
	key    ANY PRIMARY KEY NOT NULL, -- tasks.call, or tasks.task of a single one
	name   INTEGER NOT NULL,         -- symbol, 0 if unknown
	n      INTEGER NOT NULL,         -- tasks
	newest INTEGER NOT NULL,         -- the greatest tasks.task of them
	marks  INTEGER NOT NULL          -- bits of dup that tasks of it have or had
) STRICT, WITHOUT ROWID;
CREATE INDEX duplicates_by_newest ON duplicates (marks, newest);
CREATE INDEX duplicates_by_n ON duplicates (marks, n, newest);
CREATE INDEX duplicates_by_name ON duplicates (name, newest);
CREATE INDEX duplicates_by_name_n ON duplicates (name, n, newest);

-- Tasks whose arguments are not known as a whole, by symbol of their name, 0 if unknown.
CREATE TABLE ungrouped (
	name INTEGER PRIMARY KEY,
	n    INTEGER NOT NULL
) STRICT;

-- Fields of the arguments that do not count.
CREATE TABLE duplicate_rules (
	name    TEXT PRIMARY KEY,
	exclude TEXT NOT NULL, -- JSON array of paths
	at      INTEGER NOT NULL,
	actor   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Tasks that are yet to be looked at: those of a name to which a new rule applies, or all if the name is empty.
CREATE TABLE duplicate_steps (
	name TEXT PRIMARY KEY,
	done INTEGER NOT NULL, -- tasks.task up to which that is done
	last INTEGER NOT NULL  -- and up to which it is to be done
) STRICT, WITHOUT ROWID;
INSERT INTO duplicate_steps (name, done, last) SELECT '', 0, max(task) FROM tasks HAVING max(task) IS NOT NULL;
