package web_test

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// manned is a dashboard below /ops of workers that answer.
func newWorkersWeb(t *testing.T, readOnly bool) (*web.Handler, *workers) {
	t.Helper()
	b := &workersBackend{backend: newBackend(t, state.Options{})}
	b.workers = newWorkers(t, b.backend, readOnly)
	eventually(t, "a control connection", func() bool { return b.workers.commands.Client.Connected() })
	if got := b.workers.commands.Inspector.Topology(t.Context()); len(got.Missing) > 0 {
		t.Fatalf("%v did not answer", got.Missing)
	}
	h := newWeb(t, web.Options{
		Backend: b, Commands: b.workers.commands, ReadOnly: readOnly, Prefix: "/ops",
		Identify: func(*http.Request) string { return "ada" },
	})
	return h, b.workers
}

// eventually waits for something to be so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(timeout); time.Now().Before(end); <-tick.C {
		if so() {
			return
		}
	}
	t.Fatalf("never came: %s", what)
}

// words is the text of a page, without tags and runs of space.
func words(page string) string {
	page = regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, " ")
	return strings.Join(strings.Fields(page), " ")
}

func TestWorkerTabsShowWhatTheWorkerTells(t *testing.T) {
	t.Parallel()
	h, _ := newWorkersWeb(t, false)
	// The settings of the other worker are asked for by the first look.
	eventually(t, "comparison of settings", func() bool {
		return strings.Contains(visit(t, h, "/ops/workers/celery@a?tab=config").Body.String(), "compared with 1 other worker")
	})
	tests := map[string]struct {
		query string
		want  []string
		no    []string
	}{
		"now": {"", []string{
			`href="/ops/tasks/task-02"`, `href="/ops/tasks/held%2F1"`, "2026-11-22 09:00:00.000", `href="/ops/tasks/gone"`, "71",
			`href="/ops/act/task?action=terminate&amp;id=task-02"`, `href="/ops/act/worker?method=shutdown&amp;worker=celery%40a"`,
		}, nil},
		"unknown tab": {"?tab=nope", []string{`href="/ops/tasks/held%2F1"`}, nil},
		"history":     {"?tab=history", []string{"Run times", "Recent tasks", "task-29"}, nil},
		"queues":      {"?tab=queues", []string{"mail", "only this worker", "1 other worker", "arg.queue=mail"}, nil},
		"tasks":       {"?tab=tasks", []string{"billing.charge", "10/m", "serializer=json", "arg.task_name=mail.send"}, nil},
		"config": {"?tab=config", []string{
			"worker_concurrency", "celery@b/1%20ü: 1", "amqp://guest:********@rabbit//",
		}, nil},
		"config, found":     {"?tab=config&find=BROKER", []string{"broker_url", "1 of 2"}, []string{"worker_concurrency"}},
		"config, differing": {"?tab=config&differ=1", []string{"worker_concurrency"}, []string{"broker_url"}},
		"system":            {"?tab=system", []string{"TaskPool", "71", "rabbit", "Ask"}, []string{"geheim"}},
		"clock":             {"?tab=clock", []string{"Logical clock", "2\u202f048"}, nil},
		"commands":          {"?tab=commands", []string{"No commands sent to this worker yet."}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := visit(t, h, "/ops/workers/celery@a"+tc.query)
			page := w.Body.String()
			if w.Code != http.StatusOK {
				t.Fatalf("status = %d, want 200", w.Code)
			}
			for _, want := range tc.want {
				if !strings.Contains(page, want) && !strings.Contains(words(page), want) {
					t.Errorf("page has no %q:\n%s", want, words(page))
				}
			}
			_, main, _ := strings.Cut(page, "<main")
			for _, no := range tc.no {
				if strings.Contains(main, no) {
					t.Errorf("page has %q", no)
				}
			}
		})
	}
}

func TestRefreshAsksForTheReport(t *testing.T) {
	t.Parallel()
	h, _ := newWorkersWeb(t, false)
	w := visit(t, h, "/ops/workers/celery@a?tab=system&refresh=1")
	if got, want := w.Header().Get("Location"), "/ops/workers/celery@a?tab=system"; w.Code != http.StatusSeeOther || got != want {
		t.Fatalf("refreshing leads with %d to %s, want 303 to %s", w.Code, got, want)
	}
	if page := visit(t, h, "/ops/workers/celery@a?tab=system").Body.String(); !strings.Contains(page, "celery:5.6.3") {
		t.Errorf("page has no report:\n%s", words(page))
	}
}

func TestSilentWorkerIsNamed(t *testing.T) {
	t.Parallel()
	h, c := newWorkersWeb(t, false)
	c.mu.Lock()
	delete(c.answers, "celery@a")
	c.mu.Unlock()
	visit(t, h, "/ops/workers/celery@a?refresh=1")
	eventually(t, "why nothing is known", func() bool {
		return strings.Contains(words(visit(t, h, "/ops/workers/celery@a").Body.String()), "no reply from celery@a in 2 s")
	})
}

func TestWorkersAreChosenFromTheList(t *testing.T) {
	t.Parallel()
	h, _ := newWorkersWeb(t, false)
	eventually(t, "pools and queues in the list", func() bool {
		page := words(visit(t, h, "/ops/workers").Body.String())
		return strings.Contains(page, "prefork × 2") && strings.Contains(page, "celery, mail")
	})
	page := visit(t, h, "/ops/workers").Body.String()
	if diff := cmp.Diff([]string{"celery@a", "celery@b/1%20ü"}, find(`name="worker" value="([^"]*)"`, page)); diff != "" {
		t.Errorf("boxes (-want +got):\n%s", diff)
	}
	for _, want := range []string{`action="/ops/act/worker"`, `<option value="shutdown">`} {
		if !strings.Contains(page, want) {
			t.Errorf("list has no %s", want)
		}
	}
	readOnly, _ := newWorkersWeb(t, true)
	if page := visit(t, readOnly, "/ops/workers").Body.String(); strings.Contains(page, "/act/") || strings.Contains(page, `type="checkbox"`) {
		t.Errorf("a read-only list lets workers be chosen")
	}
	if page := visit(t, readOnly, "/ops/workers/celery@a").Body.String(); strings.Contains(page, "/act/") {
		t.Errorf("a read-only page leads to actions")
	}
}

func TestWorkersAreFound(t *testing.T) {
	t.Parallel()
	h, _ := newWorkersWeb(t, false)
	eventually(t, "queues in the list", func() bool {
		return strings.Contains(words(visit(t, h, "/ops/workers").Body.String()), "celery, mail")
	})
	for like, want := range map[string][]string{
		"":             {"celery@a", "celery@b/1%20ü"},
		"MAIL":         {"celery@a"},
		"mail prefork": {"celery@a"},
		"online b/1":   {"celery@b/1%20ü"},
		"nobody":       nil,
	} {
		target := "/ops/workers"
		if like != "" {
			target += "?" + url.Values{"find": {like}}.Encode()
		}
		page := visit(t, h, target).Body.String()
		if diff := cmp.Diff(want, find(`name="worker" value="([^"]*)"`, page)); diff != "" {
			t.Errorf("workers like %q (-want +got):\n%s", like, diff)
		}
		if !strings.Contains(words(page), "2 of 2 online") {
			t.Errorf("totals are not those of all workers: %s", words(page))
		}
	}
}

func TestWorkersAreGroupedAndSorted(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	for i, name := range []string{"mail@web-1", "celery@web-1", "celery@jobs"} {
		b.Apply(&state.Event{
			Kind: state.WorkerHeartbeat, Hostname: name, PID: 70, Clock: 5, Micros: noon, ReceivedMicros: noon, Freq: 2, Processed: int64(10 - i), Active: int64(i),
			Present: state.FieldFreq | state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldProcessed | state.FieldActive,
		})
	}
	h := dashboard(t, b)
	ids := func(page string) []string { return find(`<tr id="([^"]+)"`, page) }
	page := visit(t, h, "/ops/workers").Body.String()
	grouped := []string{
		"host-a", "celery%40a", "host-b%2F1%2520%C3%BC", "celery%40b%2F1%2520%C3%BC", "host-jobs", "celery%40jobs", "host-web-1", "celery%40web-1", "mail%40web-1",
	}
	if diff := cmp.Diff(grouped, ids(page)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if sorts := find(`aria-sort="([^"]*)"`, page); len(sorts) > 0 {
		t.Errorf("groups are said to be sorted %v", sorts)
	}
	for sort, want := range map[string]string{"-processed": "mail%40web-1", "processed": "celery%40jobs", "-active": "celery%40jobs", "name": "celery%40a"} {
		page := visit(t, h, "/ops/workers?sort="+sort).Body.String()
		if got := ids(page); len(got) != 5 || got[0] != want {
			t.Errorf("by %s = %v, want %s first and no groups", sort, got, want)
		}
		if got := find(`aria-sort="([^"]*)"`, page); len(got) != 1 || strings.HasPrefix(sort, "-") != (got[0] == "descending") {
			t.Errorf("by %s the heads say %v", sort, got)
		}
		if !strings.Contains(page, `href="/ops/workers" data-swap>Group by host`) {
			t.Errorf("by %s nothing leads back to the groups", sort)
		}
	}
	if w := visit(t, h, "/ops/workers?sort=colour"); w.Code != http.StatusBadRequest {
		t.Errorf("status of an unknown order = %d, want 400", w.Code)
	}
}

func TestWorkerIsToldOnce(t *testing.T) {
	t.Parallel()
	h, c := newWorkersWeb(t, false)
	const form = "/ops/act/worker?method=pool_grow&worker=celery%40a"
	page := visit(t, h, form).Body.String()
	if !strings.Contains(page, `name="arg.n"`) || strings.Contains(page, `method="post" action="/ops/act/worker"`) {
		t.Fatalf("first there is no form to fill in:\n%s", page)
	}
	page = visit(t, h, form+"&check=1&arg.n=2").Body.String()
	tokens := find(`name="token" value="([^"]*)"`, page)
	if len(tokens) != 1 || !strings.Contains(page, "celery@a") {
		t.Fatalf("then there is no preview:\n%s", page)
	}
	v := url.Values{"method": {"pool_grow"}, "worker": {"celery@a"}, "arg.n": {"2"}, "token": tokens}
	var first string
	for i := range 3 {
		status, location, body := post(t, h, "/ops/act/worker", v)
		if status != http.StatusSeeOther || !strings.HasPrefix(location, "/ops/outbox/") || i > 0 && location != first {
			t.Fatalf("sending leads with %d to %q, before to %q:\n%s", status, location, first, words(body))
		}
		first = location
	}
	eventually(t, "the answer", func() bool {
		commands, _, err := c.store.Commands(context.Background(), history.CommandFilter{Worker: "celery@a", Limit: 10})
		return err == nil && len(commands) == 1 && len(commands[0].Replies) == 1 && commands[0].Actor == "ada"
	})
	if n := c.count(`celery@a pool_grow {"n":2}`); n != 1 {
		t.Errorf("the worker was told %d times, want 1", n)
	}
	page = words(visit(t, h, "/ops/workers/celery@a?tab=commands").Body.String())
	if !strings.Contains(page, "pool will grow") || !strings.Contains(page, "ada") {
		t.Errorf("tab of commands does not tell the answer: %s", page)
	}
	v.Set("arg.n", "3")
	if status, _, _ := post(t, h, "/ops/act/worker", v); status != http.StatusUnprocessableEntity {
		t.Errorf("the same form with other values = %d, want 422", status)
	}
}

func TestRequestsAreRefused(t *testing.T) {
	t.Parallel()
	h, c := newWorkersWeb(t, false)
	tests := map[string]struct {
		form   url.Values
		status int
		want   string
	}{
		"missing argument":  {url.Values{"method": {"cancel_consumer"}, "worker": {"celery@a"}}, 400, "queue"},
		"mistyped argument": {url.Values{"method": {"pool_grow"}, "worker": {"celery@a"}, "arg.n": {"two"}}, 400, "argument n of pool_grow"},
		"unknown worker":    {url.Values{"method": {"ping"}, "worker": {"celery@aa"}}, 404, "celery@a"},
		"no worker":         {url.Values{"method": {"ping"}}, 400, "No worker selected."},
		"unknown method":    {url.Values{"method": {"nope"}, "worker": {"celery@a"}}, 400, "Unknown remote control command."},
		"unsafe method":     {url.Values{"method": {"election"}, "all": {"1"}}, 400, "Unknown remote control command."},
		"not confirmed":     {url.Values{"method": {"shutdown"}, "all": {"1"}}, 400, "Not confirmed: type “shutdown”."},
		"too long":          {url.Values{"method": {strings.Repeat("x", 5<<20)}}, 413, "larger than"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, page := post(t, h, "/ops/act/worker", tc.form)
			if status != tc.status || !strings.Contains(strings.ToLower(words(page)), strings.ToLower(tc.want)) {
				t.Errorf("status %d, want %d with %q:\n%s", status, tc.status, tc.want, words(page))
			}
		})
	}
	t.Cleanup(func() {
		commands, _, err := c.store.Commands(context.Background(), history.CommandFilter{Limit: 10})
		if err != nil || len(commands) > 0 {
			t.Errorf("commands = %v, %v, want none", commands, err)
		}
	})
}

func TestPreviewTellsTheEffect(t *testing.T) {
	t.Parallel()
	h, _ := newWorkersWeb(t, false)
	page := words(visit(t, h, "/ops/act/worker?method=cancel_consumer&worker=celery%40a&arg.queue=mail&check=1").Body.String())
	if !strings.Contains(page, "leaves queue mail with no consumer") {
		t.Errorf("preview does not tell that nobody consumes from mail: %s", page)
	}
	page = visit(t, h, "/ops/act/worker?method=shutdown&all=1").Body.String()
	if !strings.Contains(page, `name="confirm"`) || !strings.Contains(words(page), "every worker") {
		t.Errorf("shutting all down needs no confirmation: %s", words(page))
	}
}
