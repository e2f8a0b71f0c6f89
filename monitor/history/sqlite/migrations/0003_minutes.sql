-- What happened in spans of time. The names are symbols, 0 if unknown.
CREATE TABLE minutes (
	span      INTEGER NOT NULL, -- length, minutes
	at        INTEGER NOT NULL, -- start, minutes since 1970 UTC
	name      INTEGER NOT NULL,
	worker    INTEGER NOT NULL,
	queue     INTEGER NOT NULL,
	received  INTEGER NOT NULL,
	succeeded INTEGER NOT NULL,
	failed    INTEGER NOT NULL,
	retried   INTEGER NOT NULL,
	wait      BLOB,             -- series.Histogram; NULL if it is empty
	run       BLOB,
	PRIMARY KEY (span, at, name, worker, queue)
) STRICT, WITHOUT ROWID;
