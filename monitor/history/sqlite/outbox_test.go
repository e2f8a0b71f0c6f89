package sqlite_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// atNoon is when the commands of these tests are enqueued.
func atNoon() time.Time { return time.UnixMicro(1_790_000_000_000_000) }

// enqueue writes n orders of one command each.
func enqueue(tb testing.TB, d *sqlite.DB, n int) {
	tb.Helper()
	for i := range n {
		_, _, err := d.Enqueue(tb.Context(), history.CommandRequest{
			Commands: []history.Command{{Kind: "task", Group: fmt.Sprintf("queue %d", i%4), Payload: []byte(`{}`)}},
			Audit:    history.AuditRecord{At: atNoon(), Actor: "ann", Action: "publish", Detail: `{"name":"shop.pay"}`},
		})
		if err != nil {
			tb.Fatalf("enqueue: %v", err)
		}
	}
}

func TestTheAuditLogIsAppendOnly(t *testing.T) {
	t.Parallel()
	for _, statement := range []string{
		`UPDATE audit SET actor = 'eve' WHERE record = 2`, `DELETE FROM audit WHERE record = 3`, `DELETE FROM audit`,
		`INSERT OR REPLACE INTO audit SELECT * FROM audit WHERE record = 1`,
		`UPDATE OR REPLACE audit SET record = 1 WHERE record = 2`,
	} {
		dir := t.TempDir()
		d := open(t, dir)
		enqueue(t, d, 3)
		err := d.Exec(t.Context(), statement)
		if err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: error %v, want that the log is append-only", statement, err)
		}
		if bad, err := d.VerifyAudit(t.Context()); bad != 0 || err != nil {
			t.Errorf("after %s record %d is not as it was: %v", statement, bad, err)
		}
		closed(t, d)
	}
}

func TestTamperedAuditRecordsAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		script string
		want   int64
	}{
		"nothing":       {``, 0},
		"actor":         {`UPDATE audit SET actor = 'eve' WHERE record = 4`, 4},
		"text moved":    {`UPDATE audit SET actor = '', remote = actor WHERE record = 4`, 4},
		"time":          {`UPDATE audit SET at = at + 1 WHERE record = 1`, 1},
		"hash":          {`UPDATE audit SET hash = 'x' WHERE record = 2`, 2},
		"one removed":   {`DELETE FROM audit WHERE record = 3`, 3},
		"first removed": {`DELETE FROM audit WHERE record = 1`, 1},
		"last removed":  {`DELETE FROM audit WHERE record = 6`, 6},
		"all removed":   {`DELETE FROM audit`, 1},
		"kind":          {`UPDATE audit SET kind = 'view' WHERE record = 2`, 2},
		"outcome":       {`UPDATE audit SET outcome = '' WHERE record = 3`, 3},
		"kinds dropped": {`UPDATE audit SET kind = '', outcome = '', method = '', role = '', endpoint = '' WHERE record = 4`, 4},
		"two exchanged": {`UPDATE audit SET record = 99 WHERE record = 2; UPDATE audit SET record = 2 WHERE record = 3; UPDATE audit SET record = 3 WHERE record = 99`, 2},
		"one inserted": {`INSERT INTO audit (at, actor, remote, action, target, detail, commands, first, hash)
			SELECT at, actor, remote, action, target, detail, commands, first, hash FROM audit WHERE record = 6`, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			d := open(t, dir)
			enqueue(t, d, 6)
			closed(t, d)
			script(t, dir, `DROP TRIGGER audit_unchanged; DROP TRIGGER audit_kept;`+test.script)
			d = open(t, dir)
			defer closed(t, d)
			if bad, err := d.VerifyAudit(t.Context()); bad != test.want || err != nil {
				t.Errorf("first bad record is %d, error %v, want %d", bad, err, test.want)
			}
			enqueue(t, d, 1) // the log goes on, and what is missing stays missing
			if bad, err := d.VerifyAudit(t.Context()); bad != test.want || err != nil {
				t.Errorf("later the first bad record is %d, error %v, want %d", bad, err, test.want)
			}
		})
	}
}

// auditBefore returns a directory with a file of the schema before audit records had a kind, with two of them, whose hashes
// are computed here as they were then.
func auditBefore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	closed(t, open(t, dir))
	text := schema15 + `DROP TABLE relays; ALTER TABLE outbox DROP COLUMN relay; DELETE FROM goose_db_version WHERE version_id > 14;`
	for _, name := range []string{"kind", "outcome", "actor", "time"} {
		text += `DROP INDEX audit_by_` + name + `;`
	}
	for _, name := range []string{"kind", "outcome", "method", "role", "endpoint"} {
		text += `ALTER TABLE audit DROP COLUMN ` + name + `;`
	}
	hash := ""
	for i := range 2 {
		var b []byte
		add := func(s string) { b = append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...) }
		number := func(n uint64) { b = binary.BigEndian.AppendUint64(b, n) }
		add(hash)
		number(uint64(i + 1))
		number(1_790_000_000_000_000)
		for _, s := range []string{"ann", "10.0.0.7", "revoke", "celery@w1", `{"n":1}`} {
			add(s)
		}
		number(0)
		number(0)
		hash = fmt.Sprintf("%x", sha256.Sum256(b))
		text += fmt.Sprintf(`INSERT INTO audit (at, actor, remote, action, target, detail, commands, first, hash)
			VALUES (1790000000000000, 'ann', '10.0.0.7', 'revoke', 'celery@w1', '{"n":1}', 0, 0, '%s');`, hash)
	}
	script(t, dir, text)
	return dir
}

func TestEarlierAuditRecordsAreVerified(t *testing.T) {
	t.Parallel()
	dir := auditBefore(t)
	d := open(t, dir)
	enqueue(t, d, 2)
	if bad, err := d.VerifyAudit(t.Context()); bad != 0 || err != nil {
		t.Errorf("record %d is bad, error %v", bad, err)
	}
	for _, f := range []history.AuditFilter{
		{Limit: 10}, {Limit: 10, Kind: history.AuditAction}, {Limit: 10, Outcome: history.AuditAccepted},
	} {
		if list, _, err := d.AuditLog(t.Context(), f); len(list) != 4 || err != nil {
			t.Errorf("%d records of %+v, error %v, want 4", len(list), f, err)
		}
	}
	closed(t, d)
	script(t, dir, `DROP TRIGGER audit_unchanged; UPDATE audit SET kind = 'login' WHERE record = 2`)
	d = open(t, dir)
	defer closed(t, d)
	if bad, err := d.VerifyAudit(t.Context()); bad != 2 || err != nil {
		t.Errorf("an earlier record with a kind: first bad record is %d, error %v, want 2", bad, err)
	}
}

func TestRepairReadsEarlierAuditRecords(t *testing.T) {
	t.Parallel()
	dir := auditBefore(t)
	renamed := dir + "/history.damaged-20261122T100000Z.db"
	rename(t, file(dir), renamed)
	d := open(t, dir)
	defer closed(t, d)
	if done := recovery(t, d, renamed); done.Rows["audit"] != 2 || len(done.Incomplete) > 0 {
		t.Errorf("%+v, want two records", done)
	}
	if bad, err := d.VerifyAudit(t.Context()); bad != 0 || err != nil {
		t.Errorf("record %d is bad, error %v", bad, err)
	}
}

func TestNoCommandIsWrittenWhereNobodyWouldFindIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	defer closed(t, d)
	rename(t, file(dir), file(dir)+".away")
	_, _, err := d.Enqueue(t.Context(), history.CommandRequest{Commands: []history.Command{{Kind: "task"}}})
	if err == nil || !strings.Contains(err.Error(), "removed or replaced") {
		t.Errorf("enqueue into a file that is gone: error %v", err)
	}
	rename(t, file(dir)+".away", file(dir))
	enqueue(t, d, 1)
}

func TestAnOrderIsWrittenAsAWhole(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed(t, open(t, dir))
	script(t, dir, `CREATE TRIGGER fails BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no record'); END`)
	d := open(t, dir)
	defer closed(t, d)
	order := history.CommandRequest{Commands: make([]history.Command, 3), IdempotencyKey: "k", Fingerprint: "p"}
	if _, _, err := d.Enqueue(t.Context(), order); err == nil {
		t.Error("enqueue without an audit record: no error")
	}
	if _, replayed, err := d.CommandsByKey(t.Context(), "k", "p", time.Now()); replayed || err != nil {
		t.Errorf("the key is kept: %v, %v", replayed, err)
	}
	if stats, err := d.OutboxStats(t.Context()); len(stats.States) > 0 || err != nil {
		t.Errorf("stats are %+v: %v", stats, err)
	}
}

// TestCommandsAreFoundByIndexes has SQLite say how it answers what is asked again and again.
func TestCommandsAreFoundByIndexes(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	defer closed(t, d)
	enqueue(t, d, 20)
	plans, err := d.ExplainOutbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for query, plan := range plans {
		for _, line := range plan {
			looks := strings.Contains(query, "grp") && strings.Contains(line, "outbox_by_state") // at all that is pending
			if looks || strings.HasPrefix(line, "SCAN outbox") {
				t.Errorf("%s: %s", query, line)
			}
		}
	}
}

// BenchmarkClaim claims 16 commands beside others that are done, or wait in the same group.
func BenchmarkClaim(b *testing.B) {
	for _, others := range []struct {
		state history.CommandState
		n     int
	}{
		{history.CommandDone, 0},
		{history.CommandDone, 1_000_000},
		{history.CommandPending, 10_000},
	} {
		b.Run(fmt.Sprintf("%s=%d", others.state, others.n), func(b *testing.B) {
			dir := b.TempDir()
			closed(b, open(b, dir))
			script(b, dir, fmt.Sprintf(`PRAGMA synchronous = OFF;
				WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < %[1]d)
				INSERT INTO outbox (first, schema, kind, grp, target, summary, payload, task, actor, state, attempts, deferrals,
					error, expected, answers, created, due, done)
				SELECT n, 1, 'task', 'queue 1', 'queue mail', 'Publish shop.pay', x'7b7d', 'task ' || n, 'ann', '%[2]s', 0, 0,
					'', '[]', '[]', n, n, iif('%[2]s' = 'done', n, NULL) FROM n WHERE %[1]d > 0`, others.n, others.state))
			d := open(b, dir)
			defer closed(b, d)
			for b.Loop() {
				b.StopTimer()
				enqueue(b, d, 16)
				b.StartTimer()
				claimed, err := d.Claim(b.Context(), "relay", atNoon(), 16, 16)
				if err != nil || len(claimed.Commands) != 16 {
					b.Fatalf("claimed %d: %v", len(claimed.Commands), err)
				}
				b.StopTimer()
				outcomes := make([]history.Outcome, len(claimed.Commands))
				for i, c := range claimed.Commands {
					outcomes[i] = history.Outcome{ID: c.ID, State: history.CommandDone}
				}
				if err := d.RecordOutcomes(b.Context(), "relay", atNoon(), outcomes); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
