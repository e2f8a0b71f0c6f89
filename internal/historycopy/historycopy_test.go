package historycopy_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/historycopy"
	"github.com/umbelhq/umbel/internal/testpostgres"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/historytest"
	"github.com/umbelhq/umbel/monitor/history/postgres"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/state"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen is what two equal histories show.
type seen struct {
	Checkpoint history.Checkpoint
	Tasks      map[string]string
	Journal    map[uint64]string
	Counted    map[uint64]bool
	Views      []history.View
	Marks      []history.Mark
	Tokens     []history.Token
	Rules      []history.AlertRule
	Duplicates []history.DuplicateRule
	Audit      []history.AuditRecord
	Commands   []history.Command
	Rollups    []history.Rollup
	Failures   []history.FailureGroup
	Groups     int
}

func see(t *testing.T, s history.Store) (v seen) {
	t.Helper()
	ctx, now := t.Context(), time.UnixMicro(1_790_000_600_000_000)
	v.Tasks, v.Journal, v.Counted = make(map[string]string), make(map[uint64]string), make(map[uint64]bool)
	errs := []error{s.Restore(ctx, history.RestoreOptions{
		MaxTasks:   1 << 20,
		Checkpoint: func(c history.Checkpoint) error { v.Checkpoint = c; return nil },
		Task:       func(id string, events []byte) error { v.Tasks[id] = string(events); return nil },
		Omitted:    func(state.Position) error { return errors.New("a task is omitted") },
		Journal: func(entry uint64, events []byte, counted bool) error {
			v.Journal[entry], v.Counted[entry] = string(events), counted
			return nil
		},
	})}
	add := func(err error) { errs = append(errs, err) }
	var err error
	v.Views, err = s.Views(ctx)
	add(err)
	v.Marks, err = s.Marks(ctx, time.Unix(0, 0), now.AddDate(1, 0, 0), 10)
	add(err)
	v.Tokens, err = s.Tokens(ctx)
	add(err)
	v.Rules, err = s.AlertRules(ctx)
	add(err)
	v.Duplicates, err = s.DuplicateRules(ctx)
	add(err)
	for i := range v.Duplicates {
		v.Duplicates[i].Pending = 0 // a copy has applied them
	}
	v.Audit, _, err = s.AuditLog(ctx, history.AuditFilter{Limit: 500})
	add(err)
	v.Commands, _, err = s.Commands(ctx, history.CommandFilter{Limit: 500})
	add(err)
	page, err := s.FailureGroups(ctx, history.FailureRequest{Limit: 500, Now: now})
	add(err)
	v.Failures = page.Groups
	stats, err := s.DuplicateStats(ctx)
	add(err)
	v.Groups = stats.Groups
	for _, span := range history.RollupSpans() {
		r := history.RollupRange{From: time.Unix(0, 0), To: now.AddDate(1, 0, 0), Span: span.Length, Wait: true}
		add(s.Rollups(ctx, r, func(m history.Rollup) error {
			m.Wait = append([]byte(nil), m.Wait...)
			v.Rollups = append(v.Rollups, m)
			return nil
		}))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return v
}

// fill writes something of all that a history keeps.
func fill(t *testing.T, s history.Store) {
	t.Helper()
	ctx, now := t.Context(), time.UnixMicro(1_790_000_600_000_000).UTC()
	historytest.Fill(t, s, 1, 200)
	audit := history.AuditRecord{At: now, Actor: "ada", Action: "publish", Detail: "{}"}
	rule := history.DuplicateRule{Name: "pay", Exclude: []string{"at"}, At: now, Actor: "ada"}
	command := history.Command{
		Schema: history.CommandSchema, Kind: "task", Group: "g", Target: "q", Summary: "Send", Payload: []byte(`{"id":"a\u0000b"}`), TaskID: "a",
		CreatedAt: now, DueAt: now, Actor: "ada",
	}
	_, err := s.SaveView(ctx, history.View{Name: "slow", Query: "run:>1"})
	errs := []error{err}
	add := func(err error) { errs = append(errs, err) }
	_, err = s.AddMark(ctx, history.Mark{At: now, Text: "v1\xff"})
	add(err)
	_, err = s.CreateToken(ctx, history.Token{Hash: [32]byte{1}, Name: "ci", Role: "viewer", Payload: true, CreatedAt: now, ExpiresAt: now})
	add(err)
	_, err = s.SaveAlertRule(ctx, history.AlertRule{Name: "r", Enabled: true, Definition: []byte(`{}`), Receivers: []string{"ops"}, SavedAt: now})
	add(err)
	add(s.UpdateAlerts(ctx, history.AlertUpdate{At: now, Record: []byte("record"), Began: []history.AlertFiring{{RuleID: 1, RuleName: "r", Start: now, Value: 1.5, Evidence: []byte(`{}`)}}}))
	_, err = s.SaveDuplicateRule(ctx, rule, audit)
	add(err)
	_, _, err = s.Enqueue(ctx, history.CommandRequest{Commands: []history.Command{command}, Audit: audit})
	add(err)
	add(s.SaveSessions(ctx, []history.Session{{Hash: [32]byte{2}, Identity: "{}", CreatedAt: now, SeenAt: now}}, nil, nil))
	add(s.SaveOutboxSample(ctx, history.OutboxSample{Outbox: "shop", Minute: now.Unix() / 60, Ready: 3}))
	for i := range 2 {
		_, err = s.Write(ctx, history.Batch{At: now.UnixMicro() + int64(i), Journal: []byte("counted"), Checkpoint: &history.Checkpoint{
			Clock: 41, Workers: map[string][]byte{"celery@a\x00": []byte(`{}`)},
			Rollups: []history.Rollup{{At: now.Unix()/60 - int64(i), Name: "pay", Worker: "w", Received: 3}, {At: now.Unix() / 60}},
		}})
		add(err)
	}
	_, err = s.Write(ctx, history.Batch{Journal: []byte("not counted")})
	add(err)
	page, err := s.FailureGroups(ctx, history.FailureRequest{Limit: 1, Now: now})
	add(err)
	if len(page.Groups) == 0 {
		t.Fatal("no failures")
	}
	note := "known"
	add(s.NoteFailureGroup(ctx, page.Groups[0].ID, history.FailureNote{Text: &note, By: "ada", At: now}))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	from, err := sqlite.Open(t.Context(), sqlite.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	fill(t, from)
	want := see(t, from)
	address := testpostgres.Schema(t)
	to, err := postgres.Open(t.Context(), postgres.Options{URL: address, Copying: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := historycopy.Copy(ctx, from, to, func(int) { stop() }); !errors.Is(err, context.Canceled) {
		t.Fatalf("copy that is interrupted: %v, want %v", err, context.Canceled)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []postgres.Options{{}, {ReadOnly: true}, {Node: "a"}} {
		o.URL = address
		if _, err := postgres.Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "copied here in part: ") {
			t.Errorf("half a copy opened with %+v: %v", o, err)
		}
	}
	if to, err = postgres.Open(t.Context(), postgres.Options{URL: address, Copying: true}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = to.Close() }()
	again := 0
	if err := historycopy.Copy(t.Context(), from, to, func(n int) { again = n }); err != nil {
		t.Fatal(err)
	}
	if again != 0 {
		t.Errorf("%d tasks were copied again", again)
	}
	if diff := cmp.Diff(want, see(t, to)); diff != "" {
		t.Errorf("history (-from +to):\n%s", diff)
	}
	if err := historycopy.Copy(t.Context(), from, to, func(int) {}); err == nil {
		t.Error("a history was copied over another one")
	}
	if v, err := to.SaveView(t.Context(), history.View{Name: "next"}); err != nil || v.ID == want.Views[0].ID {
		t.Errorf("view that follows: %+v, %v", v, err)
	}
	w, err := to.Write(t.Context(), history.Batch{Journal: []byte("next")})
	if err != nil || w.JournalEntry != 4 {
		t.Errorf("entry that follows: %d, %v, want 4", w.JournalEntry, err)
	}
}
