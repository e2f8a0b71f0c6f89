package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// fakeResults is a fake result backend, which may be slow.
type fakeResults struct {
	mu      sync.Mutex
	takes   time.Duration
	records map[string]results.Result
	groups  map[string]results.StoredGroup
	err     error
	calls   int
}

func (s *fakeResults) Result(ctx context.Context, id string) (results.Result, error) {
	s.mu.Lock()
	s.calls++
	r, ok := s.records[id]
	err, takes := s.err, s.takes
	s.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return results.Result{}, ctx.Err()
	}
	if err == nil && !ok {
		err = results.ErrMissing
	}
	return r, err
}

func (s *fakeResults) Group(_ context.Context, id string) (results.StoredGroup, error) {
	g, ok := s.groups[id]
	if !ok {
		return g, results.ErrMissing
	}
	return g, nil
}

func (s *fakeResults) String() string { return "redis://:***@redis:6379/1" }

func (s *fakeResults) Close() error { return nil }

func (s *fakeResults) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *fakeResults) times() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// beside runs test with pages that read results from s, in a synctest bubble, after some events.
func beside(t *testing.T, s *fakeResults, test func(t *testing.T, h http.Handler), events ...*state.Event) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(t, state.Options{})
		b.Apply(events...)
		o, err := command.New(command.Options{Client: controlClient(t, inproc.New(inproc.Options{})), Outbox: b.DB, Tasks: b, Results: s, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		h, err := web.New(web.Options{Backend: b, Commands: o, Prefix: "/ops"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.Run(ctx) }()
		synctest.Wait()
		test(t, h)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func TestResultsStandBesideEvents(t *testing.T) {
	t.Parallel()
	ended := time.UnixMicro(noon + 2e6)
	s := &fakeResults{records: map[string]results.Result{
		"task-00": {TaskID: "task-00", Status: "SUCCESS", Value: json.RawMessage(`{"n":[1,2]}`), DoneAt: ended},
		"task-01": {TaskID: "task-01", Status: "SUCCESS", DoneAt: ended.Add(2 * time.Hour), NaiveTime: true, Undecodable: "opaque Python object"},
		"task-04": {TaskID: "task-04", Status: "FAILURE", Exception: "builtins.ValueError: <b>", Traceback: "Traceback: <b>", DoneAt: ended},
	}}
	beside(t, s, func(t *testing.T, h http.Handler) {
		for id, wants := range map[string][]string{
			"task-00": {"redis://:***@redis:6379/1", "&#34;n&#34;: [", "2026-11-21 12:00:02"},
			"task-01": {"Events say FAILURE, the backend says SUCCESS.", "opaque Python object", "stored without a time zone", "UTC+2"},
			"task-04": {"builtins.ValueError: &lt;b&gt;"},
			"task-03": {"No result stored.", "Results are ignored"},
			"task-02": {"No result stored."},
		} {
			page := visit(t, h, "/ops/tasks/"+id).Body.String()
			for _, want := range wants {
				if !strings.Contains(page, want) {
					t.Errorf("page of %s has no %q", id, want)
				}
			}
			if strings.Contains(page, "Disagreement") != (id == "task-01") {
				t.Errorf("page of %s says whether there is a disagreement: %v", id, id != "task-01")
			}
		}
		if page := visit(t, h, "/ops/tasks/task-02").Body.String(); strings.Contains(page, "Results are ignored") {
			t.Error("a result is expected of a task that still runs")
		}
	})
}

func TestResultsAreReadOnceForAll(t *testing.T) {
	t.Parallel()
	s := &fakeResults{records: map[string]results.Result{"task-00": {Status: "SUCCESS"}}}
	beside(t, s, func(t *testing.T, h http.Handler) {
		for range 5 {
			visit(t, h, "/ops/tasks/task-00")
		}
		if got := s.times(); got != 1 {
			t.Errorf("5 views at once read the backend %d times, want 1", got)
		}
		<-time.After(6 * time.Second)
		synctest.Wait()
		if got := s.times(); got != 2 {
			t.Errorf("the backend was read %d times 6 s later, want 2: the page had been looked at since", got)
		}
		<-time.After(time.Hour)
		synctest.Wait()
		if got := s.times(); got != 2 {
			t.Errorf("the backend was read %d times for nobody", got-2)
		}
		s.set(func() { s.records["task-00"] = results.Result{Status: "FAILURE"} })
		if page := visit(t, h, "/ops/tasks/task-00").Body.String(); !strings.Contains(page, "the backend says FAILURE") {
			t.Error("what was forgotten is not read anew")
		}
	})
}

func TestResultsKeepNobodyWaiting(t *testing.T) {
	t.Parallel()
	s := &fakeResults{takes: 2 * time.Second, records: map[string]results.Result{"task-00": {Status: "SUCCESS", Value: json.RawMessage("1")}}}
	beside(t, s, func(t *testing.T, h http.Handler) {
		start := time.Now()
		page := visit(t, h, "/ops/tasks/task-00").Body.String()
		if took := time.Since(start); took > 300*time.Millisecond {
			t.Errorf("the page waited %v for the backend", took)
		}
		if !strings.Contains(page, "Reading.") {
			t.Error("the page does not say that the backend is being asked")
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if page := visit(t, h, "/ops/tasks/task-00").Body.String(); strings.Contains(page, "Reading.") {
			t.Error("the answer was lost")
		}
		s.set(func() { s.err = errors.New("dial redis://:secret@redis: refused") })
		<-time.After(20 * time.Second)
		visit(t, h, "/ops/tasks/task-00")
		<-time.After(20 * time.Second)
		page = visit(t, h, "/ops/tasks/task-00").Body.String()
		if !strings.Contains(page, "is unavailable") || strings.Contains(page, "secret") {
			t.Errorf("page of an unreachable backend:\n%s", page)
		}
	})
}

// Indentation is as long as the nesting is deep: without a bound one page of such a result takes gigabytes.
func TestDeepResultsMakeShortPages(t *testing.T) {
	t.Parallel()
	nested := func(levels int, inside string) json.RawMessage {
		return json.RawMessage(strings.Repeat(`{"a":[`, levels) + inside + strings.Repeat(`]}`, levels))
	}
	s := &fakeResults{records: map[string]results.Result{
		"task-00": {Status: "SUCCESS", Value: nested(4_900, strings.Repeat("0,", 1<<20)+"0")},
		"task-01": {Status: "SUCCESS", Value: nested(20, `"deep", {"b": [ ]}`)},
		"task-03": {Status: "SUCCESS", Value: json.RawMessage(`"` + strings.Repeat("ü", 1<<20) + `"`)},
	}}
	beside(t, s, func(t *testing.T, h http.Handler) {
		for id, want := range map[string]string{
			"task-00": "The beginning of 2.1",
			"task-01": `[{&#34;a&#34;: [&#34;deep&#34;,{&#34;b&#34;: []}]}]`,
			"task-03": "The beginning of 2.1",
		} {
			page := visit(t, h, "/ops/tasks/"+id).Body.String()
			if len(page) > 200_000 {
				t.Errorf("page of %s is %d bytes long", id, len(page))
			}
			if !strings.Contains(page, want) {
				t.Errorf("page of %s has no %q", id, want)
			}
			if strings.Contains(want, "beginning") && !strings.Contains(page, `href="/ops/api/v1/results/`+id+`"`) {
				t.Errorf("page of %s does not lead to the whole result", id)
			}
		}
	})
}
