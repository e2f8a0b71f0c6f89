-- Rollups that are added up by one field, or by none, so that readers who tell no others apart read few rows.
CREATE TABLE rollup_sums (
	grouping  INTEGER NOT NULL, -- history.RollupGrouping
	span      INTEGER NOT NULL, -- as in rollups
	at        INTEGER NOT NULL,
	symbol    INTEGER NOT NULL, -- of the field, 0 if that is unknown or there is none
	received  INTEGER NOT NULL,
	succeeded INTEGER NOT NULL,
	failed    INTEGER NOT NULL,
	retried   INTEGER NOT NULL,
	wait      BLOB,
	run       BLOB,
	workers   BLOB,             -- if grouped by name: known symbols, ascending, as varints of their distances; NULL if there are none
	queues    BLOB,
	PRIMARY KEY (grouping, span, at, symbol)
) STRICT, WITHOUT ROWID;

-- Transactions count workflows once each.
DROP TRIGGER workflow_task_added;
DROP TRIGGER workflow_task_removed;
DROP TRIGGER workflow_task_changed;
DROP TRIGGER workflow_task_moved;
