package evaluate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// begin is when the clock of the tests starts.
func begin() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

// world is a store, a clock, and what the next record holds.
type world struct {
	*testing.T
	*sqlite.DB

	now    time.Time
	next   *alert.Record
	others peers
	sent   chan struct{} // closed when the outbox has recorded that something was sent
	*evaluate.Service
	brittle *brittle
}

// peers are what the others say.
type peers struct {
	follow      bool // another one leads
	note, noted string
}

func (p *peers) Leads() bool      { return !p.follow }
func (p *peers) Note(note string) { p.note = note }
func (p *peers) Noted() string    { return p.noted }

// brittle is a store that fails when it is told to, before it writes or after.
type brittle struct {
	history.Alerts
	before, after bool
}

var errFull = errors.New("the disk is full")

func (b *brittle) UpdateAlerts(ctx context.Context, u history.AlertUpdate) error {
	if b.before {
		b.before = false
		return errFull
	}
	err := b.Alerts.UpdateAlerts(ctx, u)
	if b.after && err == nil {
		b.after = false
		return errFull
	}
	return err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{T: t, DB: db, now: begin(), sent: make(chan struct{})}
	w.restart()
	return w
}

// restart replaces the service by one that knows only what is stored.
func (w *world) restart() {
	w.Helper()
	w.brittle = &brittle{Alerts: w.DB}
	var err error
	w.Service, err = evaluate.New(evaluate.Options{
		Store: w.brittle, Receivers: []receivers.Receiver{{Name: "ops"}, {Name: "dev"}}, URL: "https://umbel.example/ops",
		Take: func() *alert.Record { r := w.next; w.next = nil; return r },
		Count: func(context.Context, query.Query) (history.Count, error) { // which fails at times, and changes
			if n := w.now.Minute() * w.now.Minute() % 11; n > 0 {
				return history.Count{N: n}, nil
			}
			return history.Count{}, errors.New("the search took too long")
		},
		Others: &w.others, Outbox: w.DB, Sent: func() <-chan struct{} { return w.sent }, Now: func() time.Time { return w.now },
	})
	if err != nil {
		w.Fatal(err)
	}
}

// tick has a minute pass, at the end of which the record is written.
func (w *world) tick(r alert.Record) error {
	w.next = w.record(r)
	return w.Tick(w.Context())
}

func (w *world) record(r alert.Record) *alert.Record {
	r.From = w.now.UnixMicro()
	w.now = w.now.Add(time.Minute)
	r.At = w.now.UnixMicro()
	r.Connected, r.QueuesKnown = true, true
	return &r
}

func (w *world) save(name string, r alert.Rule, to ...string) evaluate.Rule {
	w.Helper()
	saved, err := w.Save(w.Context(), evaluate.Rule{AlertRule: history.AlertRule{Name: name, Enabled: true, Receivers: to}, Rule: r}, "ann")
	if err != nil {
		w.Fatal(err)
	}
	return saved
}

// told returns the notifications that were enqueued, oldest first.
func (w *world) told() (all []receivers.Notification) {
	w.Helper()
	list, _, err := w.Commands(w.Context(), history.CommandFilter{Limit: 500})
	if err != nil {
		w.Fatal(err)
	}
	for _, c := range slices.Backward(list) {
		var p struct {
			Receiver     string
			Notification receivers.Notification
		}
		if err := json.Unmarshal(c.Payload, &p); err != nil {
			w.Fatal(err)
		}
		all = append(all, p.Notification)
	}
	return all
}

func summaries(list []receivers.Notification) (texts []string) {
	for _, n := range list {
		texts = append(texts, n.Summary)
	}
	return texts
}

func (w *world) fired() []history.AlertFiring {
	w.Helper()
	list, _, err := w.AlertFirings(w.Context(), history.AlertFilter{Limit: 500})
	if err != nil {
		w.Fatal(err)
	}
	return list
}

func failures(name string, n int64) alert.Record {
	return alert.Record{Cells: []history.Rollup{{Name: name, Worker: "w1", Queue: "celery", Failed: n}}}
}

// random returns a record of anything that rules look for.
func random(at time.Time, seed int64) alert.Record {
	rng := rand.New(rand.NewPCG(uint64(seed), uint64(at.Unix())))
	var r alert.Record
	for _, name := range []string{"a", "b"} {
		var run, wait rollup.Histogram
		for range rng.IntN(4) {
			run.Add(rng.Int64N(3_000_000))
			wait.Add(rng.Int64N(3_000_000))
		}
		r.Cells = append(r.Cells, history.Rollup{
			Name: name, Worker: "w1", Queue: "q", Received: rng.Int64N(3), Failed: rng.Int64N(4) / 2, Succeeded: rng.Int64N(4), Run: run.Encode(), Wait: wait.Encode(),
		})
		r.Queues = append(r.Queues, alert.Queue{Name: name, Ready: rng.Int64N(3), Taken: alert.Taken(rng.IntN(3))})
		r.Workers = append(r.Workers, alert.Worker{Name: "w" + name, Alive: rng.IntN(5) > 0, Queues: []string{name}, Running: rng.Int64N(2), Offset: someOffset(rng)})
		if rng.IntN(12) > 0 && at.Minute() > 10 {
			r.Sends = append(r.Sends, alert.Send{Name: name, Client: "beat", N: 1, First: at.UnixMicro(), Last: at.UnixMicro()})
		}
		r.Running = append(r.Running, alert.Running{Name: name, TaskID: fmt.Sprint(name, at.Unix()/300), Worker: "w1", Since: at.Add(-time.Duration(rng.IntN(9)) * time.Second).UnixMicro()})
	}
	return r
}

// someOffset returns bounds of about 2 s either way, of which some are open.
func someOffset(rng *rand.Rand) state.ClockOffset {
	o := state.ClockOffset{Low: state.OpenLow, High: state.OpenHigh}
	at := rng.Int64N(4_000_000) - 2_000_000
	if rng.IntN(3) > 0 {
		o.Low = at - rng.Int64N(500_000)
	}
	if rng.IntN(3) > 0 {
		o.High = at + rng.Int64N(500_000)
	}
	return o
}

// TestABacktestIsWhatHappened judges live, by a process that is restarted, fails to write and changes nothing else, and
// compares its firings with those of a backtest of the same log.
func TestABacktestIsWhatHappened(t *testing.T) {
	t.Parallel()
	rules := map[string]alert.Rule{
		"failures": {Kind: alert.Threshold, Measure: alert.Failed, Limit: 3, Window: 180, For: 60},
		"share":    {Kind: alert.Threshold, Measure: alert.FailureShare, Limit: 40, Window: 300, Per: alert.PerName, Least: 4},
		"runs":     {Kind: alert.Threshold, Measure: alert.RunP95, Limit: 2.8, Window: 120, Least: 1, Query: "name:a"},
		"few":      {Kind: alert.Threshold, Measure: alert.Received, Below: true, Limit: 2, Window: 60},
		"depth":    {Kind: alert.Threshold, Measure: alert.Depth, Limit: 1, Per: alert.PerQueue, For: 60},
		"deaf":     {Kind: alert.DeafWorker, For: 60},
		"overdue":  {Kind: alert.OverdueRun, Factor: 1.5, Least: 5},
		"silent":   {Kind: alert.SilentSchedule, Factor: 1.2},
		"stuck":    {Kind: alert.StuckQueue, For: 60},
		"clocks":   {Kind: alert.ClockOffset, For: 60},
		"tasks":    {Kind: alert.Threshold, Measure: alert.Tasks, Query: "state:failure", Limit: 4, For: 60},
	}
	for seed := range int64(testenv.Trials(40)) {
		w := newWorld(t)
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		saved := map[string]evaluate.Rule{}
		for name, r := range rules {
			saved[name] = w.save(name, r)
		}
		for range 150 {
			switch rng.IntN(10) {
			case 0:
				w.restart()
			case 1:
				w.now = w.now.Add(time.Duration(rng.IntN(10)) * time.Minute)
			case 2:
				w.brittle.before = true
			}
			if err := w.tick(random(w.now, seed)); err != nil && !errors.Is(err, errFull) {
				t.Fatal(err)
			}
		}
		live := map[int64][]alert.Firing{}
		for _, f := range w.fired() {
			e := alert.Firing{Subject: f.Subject, Start: f.Start.UTC(), Value: f.Value}
			if !f.End.IsZero() {
				e.End = f.End.UTC()
			}
			if err := json.Unmarshal(f.Evidence, &e.Evidence); err != nil {
				t.Fatal(err)
			}
			live[f.RuleID] = append([]alert.Firing{e}, live[f.RuleID]...)
		}
		for name, r := range saved {
			b, err := w.Backtest(t.Context(), r.Rule)
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Firings) == 0 {
				t.Errorf("seed %d: %s never fires", seed, name)
			}
			byStart := func(list []alert.Firing) map[string]alert.Firing {
				m := map[string]alert.Firing{}
				for _, f := range list {
					m[f.Start.Format(time.RFC3339)+" "+f.Subject] = f
				}
				return m
			}
			if diff := cmp.Diff(byStart(live[r.ID]), byStart(b.Firings)); diff != "" {
				t.Fatalf("seed %d: %s (-live +backtest):\n%s", seed, name, diff)
			}
		}
	}
}

// TestWhoeverIsToldIsToldOnce has a write fail before it happened, and a process end after it.
func TestWhoeverIsToldIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("Failures", alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Limit: 2, Window: 60}, "ops", "dev")
	w.brittle.before = true
	if err := w.tick(failures("a", 5)); !errors.Is(err, errFull) {
		t.Fatalf("tick: %v, want %v", err, errFull)
	}
	if got := w.told(); len(got) > 0 {
		t.Errorf("told %v although nothing was written", summaries(got))
	}
	if err := w.Tick(t.Context()); err != nil { // the same record
		t.Fatal(err)
	}
	w.brittle.after = true
	if err := w.tick(failures("a", 5)); !errors.Is(err, errFull) {
		t.Fatalf("tick: %v, want %v", err, errFull)
	}
	if err := w.Tick(t.Context()); err != nil { // the same record, which is in the log
		t.Fatal(err)
	}
	w.brittle.after = true
	_ = w.tick(failures("a", 5))
	w.restart()
	for range 3 {
		if err := w.tick(failures("a", 5)); err != nil {
			t.Fatal(err)
		}
	}
	w.restart()
	if err := w.tick(failures("a", 0)); err != nil {
		t.Fatal(err)
	}
	want := []string{"Firing: Failures", "Firing: Failures", "Resolved: Failures", "Resolved: Failures"}
	got := w.told()
	if diff := cmp.Diff(want, summaries(got)); diff != "" {
		t.Fatalf("told (-want +got):\n%s", diff)
	}
	if got[0].ID == got[1].ID || got[0].ID == got[2].ID {
		t.Errorf("notifications share an ID: %q, %q, %q", got[0].ID, got[1].ID, got[2].ID)
	}
	a := got[0].Alerts[0]
	if a.Text != "5 failures in 1 min, above 2." || a.Link != "https://umbel.example/ops/tasks?q=state%3Afailure+updated%3A2026-05-01T12%3A00%3A00Z..2026-05-01T12%3A01%3A00Z" {
		t.Errorf("told %q with %q", a.Text, a.Link)
	}
}

// TestOneNotificationForAllThatHappensAtOnce has many names fail in a minute.
func TestOneNotificationForAllThatHappensAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.save("Failures", alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Limit: 2, Window: 60, Per: alert.PerName}, "ops")
	var r alert.Record
	for i := range 100 {
		r.Cells = append(r.Cells, history.Rollup{Name: fmt.Sprintf("task%02d", i), Failed: 5})
	}
	if err := w.tick(r); err != nil {
		t.Fatal(err)
	}
	got := w.told()
	if len(got) != 1 || len(got[0].Alerts) != 20 || got[0].More != alert.MaxSubjects-20 {
		t.Fatalf("told %v, want one notification of 20 alerts and 30 more", summaries(got))
	}
}

// TestMuteTellsNobody mutes a rule before it fires. What still fires when that ends is told.
func TestMuteTellsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.save("Failures", alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Limit: 2, Window: 60}, "ops")
	if err := w.Mute(t.Context(), r.ID, 150*time.Second, "ann"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.tick(failures("a", 5)); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.told(); len(got) > 0 || len(w.fired()) != 1 {
		t.Errorf("told %v of %d firings, want none of one", summaries(got), len(w.fired()))
	}
	if n := w.Status().Unacknowledged(w.now); n != 0 {
		t.Errorf("%d firings of muted rules are counted", n)
	}
	for range 2 {
		if err := w.tick(failures("a", 5)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"Firing: Failures"}, summaries(w.told())); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if err := w.Acknowledge(t.Context(), w.fired()[0].ID, "bob"); err != nil {
		t.Fatal(err)
	}
	if st := w.Status(); st.Unacknowledged(w.now) != 0 || st.Open[0].AcknowledgedBy != "bob" {
		t.Errorf("status = %+v, want it acknowledged", st.Open)
	}
}

// TestAClockThatIsSetBackLeavesNoRuleUnjudged sets it back by an hour, with and without a restart.
func TestAClockThatIsSetBackLeavesNoRuleUnjudged(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		w := newWorld(t)
		r := w.save("Failures", alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Limit: 2, Window: 60}, "ops")
		judge := func(failed ...int64) {
			for _, n := range failed {
				if err := w.tick(failures("a", n)); err != nil {
					t.Fatal(err)
				}
			}
		}
		judge(0, 0, 5)
		w.now = w.now.Add(-time.Hour)
		if restarts {
			w.restart()
		}
		judge(0, 5, 0)
		want := []string{"Firing: Failures", "Resolved: Failures", "Firing: Failures", "Resolved: Failures"}
		if diff := cmp.Diff(want, summaries(w.told())); diff != "" {
			t.Errorf("restarts %t: told (-want +got):\n%s", restarts, diff)
		}
		for _, f := range w.fired() {
			if f.End.Before(f.Start) {
				t.Errorf("restarts %t: a firing from %v ends %v", restarts, f.Start, f.End)
			}
		}
		if b, err := w.Backtest(t.Context(), r.Rule); err != nil || len(b.Firings) != 1 {
			t.Errorf("restarts %t: backtest %+v, %v; want the firing of the log after the clock was set back", restarts, b.Firings, err)
		}
	}
}

func TestWrongRulesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Limit: 2}
	for name, test := range map[string]struct {
		name  string
		rule  alert.Rule
		to    []string
		field string
	}{
		"no kind":       {"a", alert.Rule{}, nil, "kind"},
		"no measure":    {"a", alert.Rule{Kind: alert.Threshold}, nil, "measure"},
		"no query":      {"a", alert.Rule{Kind: alert.Threshold, Measure: alert.Tasks, Query: "state:"}, nil, "query"},
		"other fields":  {"a", alert.Rule{Kind: alert.StuckQueue, Query: "exc:ValueError"}, nil, "query"},
		"long window":   {"a", alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Window: 3601}, nil, "window_seconds"},
		"share":         {"a", alert.Rule{Kind: alert.Threshold, Measure: alert.FailureShare, Limit: 101}, nil, "limit"},
		"below by name": {"a", alert.Rule{Kind: alert.Threshold, Measure: alert.Failed, Below: true, Per: alert.PerName}, nil, "per"},
		"no name":       {" ", good, nil, "name"},
		"line":          {"a\nb", good, nil, "name"},
		"receiver":      {"a", good, []string{"nobody"}, "receivers"},
	} {
		_, err := w.Save(t.Context(), evaluate.Rule{AlertRule: history.AlertRule{Name: test.name, Receivers: test.to}, Rule: test.rule}, "")
		if wrong, ok := errors.AsType[*alert.Error](err); !ok || wrong.Field != test.field {
			t.Errorf("%s: %v, want an error of %s", name, err, test.field)
		}
	}
}
