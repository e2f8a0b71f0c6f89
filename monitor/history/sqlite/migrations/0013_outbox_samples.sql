-- How full the outboxes of applications were: the highest values of each minute.
CREATE TABLE outbox_samples (
	at      INTEGER NOT NULL, -- start, minutes since 1970 UTC
	outbox  TEXT NOT NULL,    -- its name
	ready   INTEGER NOT NULL, -- rows that the relay could take
	oldest  INTEGER NOT NULL, -- age of the oldest of them, µs
	dead    INTEGER NOT NULL, -- dead letters
	PRIMARY KEY (at, outbox)
) STRICT, WITHOUT ROWID;
