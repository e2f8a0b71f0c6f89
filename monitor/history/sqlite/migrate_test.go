package sqlite_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state/query"
)

// schema15 turns a new file into one of schema 15.
const schema15 = `
	DROP TABLE text_segments;
	DROP TABLE text_pages;
	DROP TABLE text_stale;
	DROP TABLE unindexed;
	DELETE FROM meta WHERE key = 'indexed';
	ALTER TABLE tasks ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
	CREATE INDEX tasks_unindexed ON tasks (final, clock) WHERE indexed = 0;
	CREATE VIRTUAL TABLE texts USING fts5(body, content='', contentless_delete=1, detail=none, tokenize='trigram');
	DROP TABLE rollup_sums;
	DROP TABLE workflows;
	DROP TABLE marks;
	ALTER TABLE failures DROP COLUMN note;
	ALTER TABLE failures DROP COLUMN note_by;
	ALTER TABLE failures DROP COLUMN note_at;
	ALTER TABLE failures DROP COLUMN assignee;
	ALTER TABLE failures DROP COLUMN assigned_at;
	DROP TABLE alert_rules;
	DROP TABLE alert_firings;
	DROP TABLE alert_records;
	DROP INDEX tasks_by_block;
	ALTER TABLE tasks DROP COLUMN block;
	ALTER TABLE tasks DROP COLUMN first_receipt;
	DROP TABLE snapshots;
	DELETE FROM meta WHERE key = 'receipts';
	DELETE FROM goose_db_version WHERE version_id > 15;`

// schema9 turns a new file into one of schema 9.
const schema9 = schema15 + `
	DROP INDEX tasks_by_call;
	DROP INDEX tasks_by_dup;
	ALTER TABLE tasks DROP COLUMN call;
	ALTER TABLE tasks DROP COLUMN dup;
	DROP TABLE duplicates;
	DROP TABLE ungrouped;
	DROP TABLE duplicate_rules;
	DROP TABLE duplicate_steps;
	DELETE FROM meta WHERE key LIKE 'duplicate%';
	DROP INDEX tasks_by_flags;
	ALTER TABLE rollups RENAME TO minutes;
	ALTER TABLE tasks RENAME COLUMN last_receipt TO heard;
	ALTER TABLE tasks RENAME COLUMN flags TO marks;
	CREATE INDEX tasks_marked ON tasks (marks, clock) WHERE marks <> 0;
	CREATE INDEX tasks_by_client ON tasks (client, clock) WHERE client IS NOT NULL;
	CREATE INDEX tasks_by_exchange ON tasks (exchange, clock) WHERE exchange IS NOT NULL;
	CREATE INDEX tasks_by_routing_key ON tasks (routing_key, clock) WHERE routing_key IS NOT NULL;
	CREATE INDEX tasks_by_eta ON tasks (eta, clock) WHERE eta IS NOT NULL;
	CREATE INDEX tasks_by_expires ON tasks (expires, clock) WHERE expires IS NOT NULL;
	DROP TABLE outbox_samples;
	DROP TABLE relays;
	ALTER TABLE outbox DROP COLUMN relay;
	DROP TABLE sessions;
	DROP TABLE tokens;
	DROP INDEX audit_by_kind;
	DROP INDEX audit_by_outcome;
	DROP INDEX audit_by_actor;
	DROP INDEX audit_by_time;
	ALTER TABLE audit DROP COLUMN kind;
	ALTER TABLE audit DROP COLUMN outcome;
	ALTER TABLE audit DROP COLUMN method;
	ALTER TABLE audit DROP COLUMN role;
	ALTER TABLE audit DROP COLUMN endpoint;
	DELETE FROM goose_db_version WHERE version_id > 9;`

// earlierHistory returns a directory with a file of schema 9, and what was written to it.
func earlierHistory(t *testing.T) (dir string, batches []history.Batch) {
	t.Helper()
	dir, batches = t.TempDir(), testBatches(t, 100, 24, 20)
	batches[0].Checkpoint = &history.Checkpoint{Rollups: []history.Rollup{{At: 29_800_000, Name: "shop.pay", Received: 3}}}
	d := open(t, dir)
	for _, b := range batches {
		write(t, d, b)
	}
	closed(t, d)
	script(t, dir, schema9)
	return dir, batches
}

func received(t *testing.T, d *sqlite.DB) (n int64) {
	t.Helper()
	r := history.RollupRange{From: time.Unix(0, 0), To: time.Unix(60*30_000_000, 0), Span: time.Minute}
	err := d.Rollups(t.Context(), r, func(m history.Rollup) error {
		n += m.Received
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEarlierSchemaIsUpdated(t *testing.T) {
	t.Parallel()
	dir, batches := earlierHistory(t)
	d := open(t, dir)
	defer closed(t, d)
	want, _ := written(batches)
	tasks, _, err := restored(d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	for _, text := range []string{"is:retried", "client:*", "-state:success"} {
		q, err := query.Parse(text)
		if err == nil {
			_, err = d.Tasks(t.Context(), history.TaskRequest{Query: q, Limit: 10, Now: time.Unix(1_790_000_000, 0)})
		}
		if err != nil {
			t.Errorf("search %s: %v", text, err)
		}
	}
	if got := received(t, d); got != 3 {
		t.Errorf("%d events in rollups, want 3", got)
	}
}

func TestRepairReadsAnEarlierSchema(t *testing.T) {
	t.Parallel()
	dir, batches := earlierHistory(t)
	renamed := dir + "/history.damaged-20261122T100000Z.db"
	rename(t, file(dir), renamed)
	d := open(t, dir)
	defer closed(t, d)
	want, _ := written(batches)
	if done := recovery(t, d, renamed); done.Tasks != len(want) || len(done.Incomplete) > 0 {
		t.Errorf("%+v, want %d tasks and nothing missing", done, len(want))
	}
	if got := received(t, d); got != 3 {
		t.Errorf("%d events in rollups, want 3", got)
	}
}
