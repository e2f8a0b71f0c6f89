package web_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// Tasks reported by a worker and tasks known from events are one list that names the source of each.
func TestWorkerHoldsWhatItTellsAndWhatEventsTell(t *testing.T) {
	t.Parallel()
	const later = 400 * 86_400 // seconds after noon: after the worker was asked
	b := newBackend(t, state.Options{})
	b.happen(state.TaskReceived, "waits", 90)
	b.happen(state.TaskReceived, "has-ended", 91)
	b.happen(state.TaskStarted, "has-ended", later)
	b.happen(state.TaskSucceeded, "has-ended", later+1)
	b.happen(state.TaskReceived, "has-begun", 92)
	b.happen(state.TaskStarted, "has-begun", later)
	c := newWorkers(t, b, false)
	request := func(id string) map[string]any { return map[string]any{"id": id, "name": "billing.charge"} }
	scheduled := func(id, eta string) map[string]any {
		return map[string]any{"eta": eta, "priority": 6, "request": request(id)}
	}
	c.mu.Lock()
	c.answers["celery@a"]["active"] = []any{request("task-02"), request("has-ended"), request("unseen")}
	c.answers["celery@a"]["reserved"] = []any{request("has-begun"), request("held")}
	c.answers["celery@a"]["scheduled"] = []any{
		scheduled("third", "2026-11-22T09:00:03+00:00"), scheduled("first", "2026-11-22T09:00:01+00:00"), scheduled("second", "2026-11-22T10:00:02+01:00"),
	}
	c.mu.Unlock()
	eventually(t, "a control connection", func() bool { return c.commands.Client.Connected() })
	if got := c.commands.Inspector.Topology(t.Context()); len(got.Missing) > 0 {
		t.Fatalf("%v did not answer", got.Missing)
	}
	page := visit(t, newWeb(t, web.Options{Backend: &workersBackend{b, c}, Prefix: "/ops", Commands: c.commands}), "/ops/workers/celery@a").Body.String()
	want := map[string][]string{
		"active":    {"task-02 worker, events", "unseen worker"},
		"reserved":  {"held worker", "waits events"},
		"scheduled": {"first worker", "second worker", "third worker"},
	}
	for i := 5; i < 30; i += 3 { // what events alone know to have started
		want["active"] = append(want["active"], fmt.Sprintf("task-%02d events", i))
	}
	want["active"] = append(want["active"], "has-begun events")
	for method, want := range want {
		_, panel, _ := strings.Cut(page, `aria-labelledby="`+method+`-title"`)
		panel, _, _ = strings.Cut(panel, "</section>")
		var got []string
		for _, row := range regexp.MustCompile(`(?s)href="/ops/tasks/([^"]+)".*?data-label="Source"[^>]*>(.*?)</td>`).FindAllStringSubmatch(panel, -1) {
			source := regexp.MustCompile(`\s*<time[^>]*>[^<]*</time>`).ReplaceAllString(row[2], "") // how old it is
			got = append(got, row[1]+" "+strings.ReplaceAll(words(source), " ·", ","))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", method, diff)
		}
	}
}
