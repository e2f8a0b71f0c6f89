package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web"
)

// Every number that is a link, and every number of a link, is the number of tasks in the list behind it.
func TestNumbersLeadToWhatTheyCount(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	duplicates := templates.DuplicatePath(repeatedCall(t, b))
	b.Apply(longEvents()...)
	b.Apply(treeEvents(4)...)
	b.happen(state.TaskReceived, "retried", 200)
	b.happen(state.TaskRetried, "retried", 201)
	b.happen(state.TaskReceived, "revoked", 202)
	b.happen(state.TaskRevoked, "revoked", 203)
	b.happen(state.TaskStarted, "never", 1000)
	b.Apply(&state.Event{ // its worker starts again
		Kind: state.WorkerOnline, Hostname: "celery@a", PID: 99, Clock: 2000, Micros: noon + 1_100_000_000, ReceivedMicros: noon + 1_000_000, Freq: 2,
		Present: state.FieldFreq | state.FieldClock | state.FieldPID | state.FieldTimestamp,
	})
	now := time.UnixMicro(noon).Add(20 * time.Minute)
	b.Update(func(c *state.Cluster) { c.Reconcile(now.UnixMicro()) }) // as a monitor does now and then
	h, err := web.New(web.Options{Backend: b, Prefix: "/ops", Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	pages := []string{"/", "/tasks", "/tasks?q=is%3Afinished", "/types", "/workers", "/workers/celery@a", "/failures", "/duplicates", duplicates, "/workflows", "/schedules"}
	failures, err := b.History().FailureGroups(t.Context(), history.FailureRequest{Limit: 10, Now: now})
	if err != nil || len(failures.Groups) != 2 {
		t.Fatalf("%d groups of failures, %v; want 2", len(failures.Groups), err)
	}
	for i := range failures.Groups {
		pages = append(pages, templates.FailurePath(failures.Groups[i].ID.String()))
	}
	link := regexp.MustCompile(`(?s)<a\b([^>]*href="(/ops/tasks[?"][^>]*))>(.*?)</a>`)
	number := regexp.MustCompile(`(?s)class="(?:count|figure)">\s*([\d,]+)\s*<|^\s*(?:All )?([\d,]+)(?: tasks?)?\s*$`)
	checked := map[string]bool{}
	for _, path := range pages {
		for _, a := range link.FindAllStringSubmatch(visit(t, h, "/ops"+path).Body.String(), -1) {
			n := number.FindStringSubmatch(a[3])
			if n == nil || strings.Contains(a[1], "aria-current") { // which leads away
				continue
			}
			want, target := n[1]+n[2], find(`href="([^"]*)"`, a[0])[0]
			list := visit(t, h, target)
			if list.Code == http.StatusSeeOther {
				list = visit(t, h, list.Header().Get("Location"))
			}
			if got := strings.Join(find(`id="matches"[^>]*>\s*(?:at least )?([\d,]+)`, list.Body.String()), " "); got != want {
				t.Errorf("%s says %q of what %s lists %q of", path, want, target, got)
			}
			checked[path+" "+target] = true
		}
	}
	if len(checked) < 30 {
		t.Errorf("only %d numbers were found", len(checked))
	}
}
