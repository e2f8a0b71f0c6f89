package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// shelf is where tests save tasks.
type shelf struct {
	tasks   map[string][]byte
	workers [][]byte
}

// save puts away n of the tasks that have changed, as a store does.
func (s *shelf) save(t testing.TB, c *state.Cluster, n int) {
	t.Helper()
	if s.tasks == nil {
		s.tasks = make(map[string][]byte)
	}
	known := make(map[string][]byte)
	for _, u := range c.TakeUnsaved(n) {
		if old, ok := s.tasks[u.View.ID]; ok && !u.Stored {
			known[u.View.ID] = old
			continue
		}
		s.tasks[u.View.ID] = u.Events
	}
	if err := c.Saved(true, known); err != nil {
		t.Fatal(err)
	}
	if err := c.SaveWorkers(nil, func(_ string, saved []byte) { s.workers = append(s.workers, saved) }); err != nil {
		t.Fatal(err)
	}
}

func (s *shelf) saveAll(t testing.TB, c *state.Cluster) {
	t.Helper()
	for c.Unsaved() > 0 {
		s.save(t, c, 100)
	}
}

// load returns a cluster of what was saved.
func (s *shelf) load(t testing.TB, o state.Options) *state.Cluster {
	t.Helper()
	c := state.New(o)
	for id, events := range s.tasks {
		if err := c.Load(id, events); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range s.workers {
		if err := c.LoadWorker(w); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// tracked folds bodies into a cluster that tells what is unsaved, and calls between after each event.
func tracked(t testing.TB, o state.Options, bodies [][]byte, between func(c *state.Cluster)) *state.Cluster {
	t.Helper()
	o.Track = true
	c := state.New(o)
	var d celery.Decoder
	for _, b := range bodies {
		if lost, cause := d.Decode(b, 0, func(e *state.Event) {
			e.ReceivedMicros = e.Micros
			c.Apply(e)
		}); lost > 0 {
			t.Fatalf("body %s: %s", b, cause)
		}
		between(c)
	}
	return c
}

func bodies(h eventgen.History) (list [][]byte) {
	for _, b := range h.Events {
		list = append(list, b)
	}
	return list
}

// later is a second after all that histories tell of.
const later = 5000

func TestSavedTasksAreRestored(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		var s shelf
		n := 0
		want := tracked(t, state.Options{}, bodies(eventgen.New(seed, wild())), func(c *state.Cluster) {
			if n++; n%5 == 0 {
				s.save(t, c, 3)
			}
		})
		s.saveAll(t, want)
		got := s.load(t, state.Options{})
		got.RestoreClock(want.Clock())
		want.Expire(at(later))
		got.Resume(at(later))
		if diff := cmp.Diff(tasks(want), tasks(got)); diff != "" {
			t.Fatalf("seed %d: tasks (-want +restored):\n%s", seed, diff)
		}
		if diff := cmp.Diff(want.Workers(), got.Workers()); diff != "" {
			t.Fatalf("seed %d: workers (-want +restored):\n%s", seed, diff)
		}
		if want.Clock() != got.Clock() {
			t.Fatalf("seed %d: receiver clock %d restored as %d", seed, want.Clock(), got.Clock())
		}
	}
}

// TestEvictedTasksComeBack keeps almost nothing in memory: late events of what was evicted meet the rest of the
// task when it is saved.
func TestEvictedTasksComeBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testenv.Trials(200)) {
		o := wild()
		o.Tasks = 12
		h := bodies(eventgen.New(seed, o))
		want := tracked(t, state.Options{}, h, func(*state.Cluster) {})
		var s shelf
		n := 0
		small := tracked(t, state.Options{MaxTasks: 1}, h, func(c *state.Cluster) {
			if n++; n%3 == 0 {
				s.save(t, c, 2)
			}
		})
		s.saveAll(t, small)
		got := s.load(t, state.Options{})
		if diff := cmp.Diff(tasks(want), tasks(got), ignoreStamps()); diff != "" {
			t.Fatalf("seed %d: tasks (-all in memory +saved and evicted):\n%s", seed, diff)
		}
		if held := small.Counts().Tasks; held > 1 {
			t.Fatalf("seed %d: %d tasks held", seed, held)
		}
	}
}

func TestNothingIsEvictedBeforeItIsSaved(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{MaxTasks: 10, Track: true})
	for i := range 100 {
		apply(c, ev(state.TaskSucceeded, fmt.Sprint("t", i), "w1", 10, float64(i)))
	}
	if n := c.Counts().Tasks; n != 100 {
		t.Fatalf("%d tasks held before any was saved, want all 100", n)
	}
	taken := c.TakeUnsaved(50)
	apply(c, ev(state.TaskFailed, "t3", "w1", 10, 200)) // while it is being saved
	if err := c.Saved(true, nil); err != nil {
		t.Fatal(err)
	}
	if n := c.Counts().Tasks; len(taken) != 50 || n != 51 {
		t.Errorf("%d tasks held after %d were saved, want 50 unsaved and one that changed meanwhile", n, len(taken))
	}
	if h := c.LowWaterMark(); h == nil || h.ID != "t49" {
		t.Errorf("horizon %v, want the newest evicted task, t49", h)
	}
}

func TestFailedSaveIsTriedAgainFirst(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{Track: true})
	for i := range 4 {
		apply(c, ev(state.TaskReceived, fmt.Sprint("t", i), "w1", 10, float64(i)))
	}
	c.TakeUnsaved(2)
	apply(c, ev(state.TaskStarted, "t1", "w1", 10, 9))
	if err := c.Saved(false, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range c.TakeUnsaved(9) {
		got = append(got, u.View.ID)
	}
	slices.Sort(got[1:])
	if diff := cmp.Diff([]string{"t0", "t1", "t2", "t3"}, got); diff != "" {
		t.Errorf("unsaved after a failure (-want +got):\n%s", diff)
	}
}

func TestUnsavedTasksFollowTheList(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{Track: true})
	for i := range 10 {
		apply(c, ev(state.TaskReceived, fmt.Sprint("t", i), "w1", 10, float64(i+1)))
	}
	c.TakeUnsaved(9) // being saved
	if err := c.Saved(true, nil); err != nil {
		t.Fatal(err)
	}
	apply(c, ev(state.TaskStarted, "t3", "w1", 10, 20), ev(state.TaskStarted, "t5", "w1", 10, 21))
	c.TakeUnsaved(2)
	ids := func(list []state.Task) (ids []string) {
		for _, t := range list {
			ids = append(ids, t.ID)
		}
		return ids
	}
	first := c.UnsavedTasks(nil, false, 2)
	rest := c.UnsavedTasks(&state.Position{Stamp: first[1].Stamp, ID: first[1].ID}, false, 9)
	up := c.UnsavedTasks(nil, true, 9)
	if diff := cmp.Diff([][]string{{"t5", "t3"}, {"t9"}, {"t9", "t3", "t5"}}, [][]string{ids(first), ids(rest), ids(up)}); diff != "" {
		t.Errorf("unsaved tasks (-want +got):\n%s", diff)
	}
	if !c.Changed("t5") || c.Changed("t0") || c.Changed("nowhere") {
		t.Error("Changed is wrong about a task")
	}
}

// TestLostTextIsNotSavedOver fills the text of a small cluster after a task was saved.
func TestLostTextIsNotSavedOver(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{MaxText: 1, Track: true})
	var s shelf
	apply(c, ev(state.TaskReceived, "t", "w1", 10, 1))
	s.saveAll(t, c)
	for i := range 40 {
		filler := ev(state.TaskSucceeded, fmt.Sprint("filler", i), "w1", 10, float64(i+10))
		filler.Result, filler.Present = fmt.Sprint(i)+strings.Repeat("x", 64<<10), filler.Present|state.FieldResult
		apply(c, filler)
		s.saveAll(t, c)
	}
	apply(c, ev(state.TaskStarted, "t", "w1", 10, 60))
	if got := mustTask(t, c, "t"); got.Args != nil {
		t.Fatal("no text was dropped")
	}
	s.saveAll(t, c)
	got := mustTask(t, s.load(t, state.Options{}), "t")
	if got.State != state.Started || got.Args == nil || *got.Args != "(1,)" || got.Truncated {
		t.Errorf("saved again as %s with args %v, truncated %v", got.State, got.Args, got.Truncated)
	}
}

func TestJournalIsReplayed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		var journal []byte
		want := state.New(state.Options{})
		var d celery.Decoder
		for _, b := range eventgen.New(seed, wild()).Events {
			d.Decode(b, 1, func(e *state.Event) {
				e.ReceivedMicros = e.Micros
				if ch := want.Apply(e); e.Kind.Task() || e.Kind.Worker() {
					journal = state.AppendEvent(journal, e, ch.Clock)
				}
			})
		}
		got := state.New(state.Options{})
		for n := range 2 { // the second time, nothing is new
			if err := got.Replay(journal, nil, func(e *state.Event, ch state.Change) {
				if n == 1 && e.Kind.Task() && ch.New {
					t.Errorf("seed %d: %s of %s is new again", seed, e.Subject, e.ID)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		want.Expire(at(later))
		got.Resume(at(later))
		if diff := cmp.Diff(tasks(want), tasks(got)); diff != "" {
			t.Fatalf("seed %d: tasks (-want +replayed):\n%s", seed, diff)
		}
		if diff := cmp.Diff(want.Workers(), got.Workers()); diff != "" {
			t.Fatalf("seed %d: workers (-want +replayed):\n%s", seed, diff)
		}
	}
}

func TestReaderReturnsTheSame(t *testing.T) {
	t.Parallel()
	var r state.Reader
	for seed := range uint64(50) {
		c := tracked(t, state.Options{}, bodies(eventgen.New(seed, wild())), func(*state.Cluster) {})
		for _, u := range c.TakeUnsaved(100) {
			want, events := u.View, c.TaskEvents(u.View.ID)
			want.Children, want.Orphaned, want.OrphanReason, want.Lost = nil, false, "", nil
			got, gotEvents, err := r.TaskEvents(want.ID, u.Events)
			if err != nil {
				t.Fatal(err)
			}
			got.Children = nil
			if diff := cmp.Diff(want, got) + cmp.Diff(events, gotEvents); diff != "" {
				t.Fatalf("seed %d: task and events (-cluster +reader):\n%s", seed, diff)
			}
		}
	}
}

func TestThinKeepsWhatShows(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{Track: true})
	apply(c, ev(state.TaskReceived, "busy", "w1", 10, 1), ev(state.TaskStarted, "busy", "w1", 10, 2))
	for i := range 20 {
		e := ev(state.TaskCustom, "busy", "w1", 10, float64(3+i))
		e.Subject = "progress"
		apply(c, e)
	}
	apply(c, ev(state.TaskSucceeded, "busy", "w1", 10, 30), ev(state.TaskSucceeded, "calm", "w1", 10, 31))
	var r state.Reader
	for _, u := range c.TakeUnsaved(2) {
		thin, less, err := r.Compact(u.View.ID, u.Events)
		if err != nil {
			t.Fatal(err)
		}
		got, events, err := r.TaskEvents(u.View.ID, thin)
		if err != nil {
			t.Fatal(err)
		}
		want := u.View
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s thinned (-want +got):\n%s", want.ID, diff)
		}
		if n := map[string]int{"busy": 4, "calm": 1}[want.ID]; len(events) != n || less != (want.ID == "busy") {
			t.Errorf("%s has %d events once thinned (%v), want %d", want.ID, len(events), less, n)
		}
	}
}

// odd is a cluster of tasks whose events are unusual: huge numbers, cut text, no names, foreign ids.
func odd(rules state.Rules) *state.Cluster {
	const parent = "0c2b5de3-3b06-4b55-8f2c-111111111111"
	c := state.New(state.Options{Rules: rules, MaxText: 1, Track: true})
	long := ev(state.TaskFailed, "long", "w1", 10, 1)
	long.Traceback, long.Present = strings.Repeat("x", 100_000), long.Present|state.FieldTraceback
	nameless := ev(state.TaskSent, "nameless", "gen1@web", 1, 1)
	nameless.Name, nameless.Queue, nameless.Present = "", "q", nameless.Present&^state.FieldName|state.FieldQueue
	child := ev(state.TaskReceived, "Kind Nr. 1", "w1", 10, 2)
	child.ParentID, child.RootID, child.Present = parent, parent, child.Present|state.FieldParentID|state.FieldRootID
	again := retry(ev(state.TaskReceived, "Kind Nr. 1", "w1", 10, 3), 1)
	again.ParentID, again.RootID, again.Present = again.ID, parent, again.Present|state.FieldParentID|state.FieldRootID
	custom := ev(state.TaskCustom, "custom", "w1", 11, 4)
	custom.Subject = "half-way"
	apply(c, long, nameless, child, again, custom,
		retry(ev(state.TaskSent, "patient", "gen1@web", 1, 1), 70_000), retry(ev(state.TaskSent, "negative", "gen1@web", 1, 1), -3),
		ev(state.TaskReceived, parent, "w1", 10, 5))
	return c
}

func TestTheUnusualIsRestored(t *testing.T) {
	t.Parallel()
	want := odd(state.Causal)
	var s shelf
	s.saveAll(t, want)
	got := s.load(t, state.Options{})
	if diff := cmp.Diff(tasks(want), tasks(got)); diff != "" {
		t.Errorf("tasks (-want +restored):\n%s", diff)
	}
}

func TestWhatWasNotSavedIsRefused(t *testing.T) {
	t.Parallel()
	c := state.New(state.Options{Track: true})
	apply(c, ev(state.TaskReceived, "t", "w1", 10, 1))
	good := c.TakeUnsaved(1)[0].Events
	for name, events := range map[string][]byte{
		"nothing": nil, "form only": good[:1], "another form": append([]byte{99}, good[1:]...), "cut": good[:len(good)-1],
		"text": []byte("no events"), "huge number": {1, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	} {
		if err := state.New(state.Options{}).Load("t", events); !errors.Is(err, state.ErrSaved) {
			t.Errorf("%s: Load error = %v, want ErrSaved", name, err)
		}
	}
	if err := c.LoadWorker([]byte("{}")); err == nil {
		t.Error("a worker without a life was loaded")
	}
}

// FuzzLoad loads anything as a task, and saves what it made of that.
func FuzzLoad(f *testing.F) {
	c := odd(state.Causal)
	for _, u := range c.TakeUnsaved(100) {
		if len(u.Events) < 1000 {
			f.Add(u.Events)
		}
	}
	f.Fuzz(func(t *testing.T, events []byte) {
		c := state.New(state.Options{Track: true})
		if err := c.Load("id", events); err != nil {
			return
		}
		apply(c, ev(state.TaskRevoked, "id", "w9", 10, 1))
		saved := c.TakeUnsaved(1)
		var r state.Reader
		got, _, err := r.TaskEvents("id", saved[0].Events)
		if err != nil {
			t.Fatal(err)
		}
		want := saved[0].View
		want.Orphaned, want.OrphanReason, want.Lost = false, "", nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("saved and read (-want +got):\n%s", diff)
		}
		if err := state.New(state.Options{}).Replay(events, nil, func(*state.Event, state.Change) {}); err == nil && bytes.Equal(events, []byte{0}) {
			t.Error("replayed nothing")
		}
	})
}
