-- Tasks by when they were last written, which the nodes that follow read.
CREATE SEQUENCE task_changes;
ALTER TABLE tasks ADD COLUMN changed bigint NOT NULL DEFAULT 0;
CREATE INDEX tasks_by_change ON tasks (changed);

-- Tasks that retention has removed within the last hour, which the nodes that follow forget.
CREATE TABLE removals (
    removal bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    ids text[] NOT NULL
);

-- The Umbels that have this history. Each tells every second how it is doing.
CREATE TABLE nodes (
    name text COLLATE "C" PRIMARY KEY,
    holder text NOT NULL,
    since timestamptz NOT NULL, -- when it began to lead or to follow
    seen timestamptz NOT NULL,
    connected boolean NOT NULL,
    lag bigint NOT NULL, -- µs
    epoch bigint NOT NULL -- 0 if it follows
);
