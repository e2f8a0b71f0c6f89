-- Relays, which send commands, as long as they live.
CREATE TABLE relays (
    relay text COLLATE "C" PRIMARY KEY, -- random, of one process
    until timestamptz NOT NULL, -- when it is gone unless it renews that
    doubted timestamptz -- when another one found that it has not
);
ALTER TABLE outbox ADD COLUMN relay text COLLATE "C" NOT NULL DEFAULT ''; -- that has claimed the command last

-- How often rules for duplicates have changed: who writes tasks reads them anew.
ALTER TABLE lease ADD COLUMN rules bigint NOT NULL DEFAULT 0;
