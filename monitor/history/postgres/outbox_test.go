package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
)

// fillOutbox writes commands of many groups that are done, and of four that wait.
func fillOutbox(tb testing.TB, address string, finished, waiting int) {
	tb.Helper()
	insert := func(state, group string, n int) {
		testpostgres.Execute(tb, address, fmt.Sprintf(`INSERT INTO outbox (first, schema, kind, grp, target, summary, payload, task, actor, state, attempts,
			deferrals, error, expected, answers, created, due, done)
			SELECT n, 1, 'task', 'queue ' || n %% %s, 'queue mail', 'Publish shop.pay', '{}', 'task ' || n, 'ann ' || n %% 1000, '%s', 0, 0,
			'', '[]', '[]', n, n, CASE WHEN '%[2]s' = 'done' THEN n END FROM generate_series(1, %d) AS n`, group, state, n))
	}
	insert("done", "100", finished)
	insert("pending", "4", waiting)
	testpostgres.Execute(tb, address, `ANALYZE outbox`)
}

// TestCommandsAreFoundByIndexes has PostgreSQL say how it answers what is asked again and again.
func TestCommandsAreFoundByIndexes(t *testing.T) {
	t.Parallel()
	address := testpostgres.Schema(t)
	d := open(t, address)
	defer closed(t, d)
	fillOutbox(t, address, 20_000, 2_000)
	plans, err := d.ExplainOutbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for query, plan := range plans {
		for _, line := range plan {
			if strings.Contains(line, "Seq Scan on outbox") {
				t.Errorf("%s:\n%s", query, strings.Join(plan, "\n"))
			}
		}
	}
}

// appendAudit writes records of the audit log.
func appendAudit(t *testing.T, d *postgres.DB, n int) {
	t.Helper()
	for range n {
		if err := d.AppendAudit(t.Context(), history.AuditRecord{At: atNoon(), Actor: "ann\x00\xff", Action: "publish"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheAuditLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	address := testpostgres.Schema(t)
	d := open(t, address)
	defer closed(t, d)
	appendAudit(t, d, 3)
	for _, statement := range []string{
		`UPDATE audit SET actor = 'eve' WHERE record = 2`, `DELETE FROM audit WHERE record = 3`, `DELETE FROM audit`, `TRUNCATE audit`,
	} {
		err := d.Exec(t.Context(), statement)
		if err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: error %v, want that the log is append-only", statement, err)
		}
	}
	if bad, err := d.VerifyAudit(t.Context()); bad != 0 || err != nil {
		t.Errorf("record %d is not as it was: %v", bad, err)
	}
}

func TestTamperedAuditRecordsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		statement string
		want      int64
	}{
		"nothing":       {`SELECT 1`, 0},
		"actor":         {`UPDATE audit SET actor = 'eve' WHERE record = 4`, 4},
		"one removed":   {`DELETE FROM audit WHERE record = 3`, 3},
		"last removed":  {`DELETE FROM audit WHERE record = 6`, 6},
		"all removed":   {`DELETE FROM audit`, 1},
		"time":          {`UPDATE audit SET at = at + 1 WHERE record = 1`, 1},
		"kinds dropped": {`UPDATE audit SET kind = '', outcome = '' WHERE record = 2`, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := testpostgres.Schema(t)
			d := open(t, address)
			defer closed(t, d)
			appendAudit(t, d, 6)
			testpostgres.Execute(t, address, `DROP TRIGGER audit_unchanged ON audit; `+test.statement)
			for range 2 { // the log goes on, and what is missing stays missing
				if bad, err := d.VerifyAudit(t.Context()); bad != test.want || err != nil {
					t.Errorf("first bad record is %d, error %v, want %d", bad, err, test.want)
				}
				appendAudit(t, d, 1)
			}
		})
	}
}

// TestCountsAreAddedUp has many changes of states, which are counted in a row each, become few rows.
func TestCountsAreAddedUp(t *testing.T) {
	t.Parallel()
	address := testpostgres.Schema(t)
	d := open(t, address)
	defer closed(t, d)
	fillOutbox(t, address, 1_500, 500)
	before, err := d.OutboxStats(t.Context())
	if err != nil || before.States[history.CommandDone] != 1_500 || before.States[history.CommandPending] != 500 {
		t.Fatalf("%+v, %v", before, err)
	}
	if _, err := d.Reclaim(t.Context(), "relay", atNoon(), atNoon(), nil); err != nil {
		t.Fatal(err)
	}
	rows, err := d.CountRows(t.Context())
	if rows > 8 || err != nil {
		t.Errorf("%d rows hold numbers of commands, error %v", rows, err)
	}
	after, err := d.OutboxStats(t.Context())
	if err != nil || after.States[history.CommandDone] != 1_500 || after.States[history.CommandPending] != 500 {
		t.Errorf("%+v, %v", after, err)
	}
}

// BenchmarkClaim claims 16 commands beside others that are done, or wait in the same groups.
func BenchmarkClaim(b *testing.B) {
	for _, others := range []struct{ done, pending int }{{0, 0}, {200_000, 0}, {0, 10_000}} {
		b.Run(fmt.Sprintf("done=%d pending=%d", others.done, others.pending), func(b *testing.B) {
			address := testpostgres.Schema(b)
			d := open(b, address)
			defer closed(b, d)
			fillOutbox(b, address, others.done, others.pending)
			for b.Loop() {
				b.StopTimer()
				request := history.CommandRequest{Audit: history.AuditRecord{At: atNoon()}}
				for i := range 16 {
					request.Commands = append(request.Commands, history.Command{Kind: "task", Group: fmt.Sprintf("queue %d", i%4)})
				}
				if _, _, err := d.Enqueue(b.Context(), request); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				claimed, err := d.Claim(b.Context(), "relay", atNoon(), 16, 16)
				if err != nil || len(claimed.Commands) != 16 {
					b.Fatalf("claimed %d: %v", len(claimed.Commands), err)
				}
				b.StopTimer()
				var outcomes []history.Outcome
				for i := range claimed.Commands {
					outcomes = append(outcomes, history.Outcome{ID: claimed.Commands[i].ID, State: history.CommandDone})
				}
				if err := d.RecordOutcomes(b.Context(), "relay", atNoon(), outcomes); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
