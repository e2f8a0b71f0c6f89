-- Every index ends in clock, so that what it finds is known in the order of lists without a look at the rows.
-- Bytes a task, as measured: docs/decisions/0012-index-text-by-trigrams.md.

CREATE INDEX tasks_by_clock ON tasks (clock);

-- What is asked for by value. The state is in between since people ask for both: failures of this task.
CREATE INDEX tasks_by_state ON tasks (state, clock);
CREATE INDEX tasks_by_name ON tasks (name, state, clock) WHERE name IS NOT NULL;
CREATE INDEX tasks_by_worker ON tasks (worker, state, clock) WHERE worker IS NOT NULL;
CREATE INDEX tasks_by_queue ON tasks (queue, state, clock) WHERE queue IS NOT NULL;
CREATE INDEX tasks_by_client ON tasks (client, clock) WHERE client IS NOT NULL;
CREATE INDEX tasks_by_exchange ON tasks (exchange, clock) WHERE exchange IS NOT NULL;
CREATE INDEX tasks_by_routing_key ON tasks (routing_key, clock) WHERE routing_key IS NOT NULL;
CREATE INDEX tasks_by_parent ON tasks (parent, clock) WHERE parent IS NOT NULL;
CREATE INDEX tasks_by_root ON tasks (root, clock) WHERE root IS NOT NULL;

-- What is asked for by range, or sorted by.
CREATE INDEX tasks_by_sent ON tasks (sent, clock) WHERE sent IS NOT NULL;
CREATE INDEX tasks_by_received ON tasks (received, clock) WHERE received IS NOT NULL;
CREATE INDEX tasks_by_started ON tasks (started, clock) WHERE started IS NOT NULL;
CREATE INDEX tasks_by_finished ON tasks (finished, clock) WHERE finished IS NOT NULL;
CREATE INDEX tasks_by_updated ON tasks (updated, clock);
CREATE INDEX tasks_by_eta ON tasks (eta, clock) WHERE eta IS NOT NULL;
CREATE INDEX tasks_by_expires ON tasks (expires, clock) WHERE expires IS NOT NULL;
CREATE INDEX tasks_by_wait ON tasks (wait, clock) WHERE wait IS NOT NULL;
CREATE INDEX tasks_by_run ON tasks (run, clock) WHERE run IS NOT NULL;
CREATE INDEX tasks_by_retries ON tasks (retries, clock) WHERE retries IS NOT NULL;

-- The few that something is special about.
CREATE INDEX tasks_marked ON tasks (marks, clock) WHERE marks <> 0;
CREATE INDEX tasks_unindexed ON tasks (final, clock) WHERE indexed = 0;
