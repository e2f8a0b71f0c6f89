-- Names that tasks had before they were replaced by others under the same id, as symbols. Those tasks have the mark 8.
CREATE TABLE former_names (
	name INTEGER NOT NULL,
	task INTEGER NOT NULL,
	PRIMARY KEY (name, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX former_names_by_task ON former_names (task);
