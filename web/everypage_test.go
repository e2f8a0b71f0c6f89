package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web"
)

// What a cluster has that is hard to lay out: names without a place to break.
const (
	longWorker = "celery@warehouse-worker-deployment-production-eu-central-1-7d9f6c5b8-x2x4q.warehouse.svc.cluster.local"
	longQueue  = "warehouse_reconciliation_with_external_inventory_provider_low_priority_bulk"
	longName   = "company.warehouse.reconciliation.tasks.synchronise_inventory_with_external_provider_and_notify_subscribers"
)

// longEvents are those of tasks with long names, arguments and exceptions, one of which fails, of a workflow of them, and of a
// worker.
func longEvents() []*state.Event {
	present := state.FieldClock | state.FieldPID | state.FieldTimestamp
	events := []*state.Event{{
		Kind: state.WorkerHeartbeat, Hostname: longWorker, PID: 7, Clock: 1, Micros: noon, ReceivedMicros: noon, Freq: 2, Present: present | state.FieldFreq,
	}}
	for i := range 6 {
		id := fmt.Sprintf("9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c%02d", i)
		root, parent := "9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c00", ""
		if i > 0 {
			parent = fmt.Sprintf("9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c%02d", (i-1)/2)
		}
		for j, kind := range []state.Kind{state.TaskSent, state.TaskReceived, state.TaskStarted, []state.Kind{state.TaskSucceeded, state.TaskFailed}[i%2]} {
			second := 100 + 10*i + j
			e := &state.Event{
				Kind: kind, Hostname: longWorker, PID: 7, ID: id, Name: longName, RootID: root, ParentID: parent, Queue: longQueue, RoutingKey: longQueue,
				Args:   "('" + strings.Repeat("0123456789abcdef", 16) + "', 41834)",
				Kwargs: "{'inventory_provider_configuration_reference': '" + strings.Repeat("configuration/", 20) + "'}",
				Clock:  int64(10 + second), Micros: noon + int64(second)*1_000_000, ReceivedMicros: noon, Present: present,
			}
			switch kind { //nolint:exhaustive // the kinds of the list above
			case state.TaskSent:
				e.Hostname = "gen4711@" + strings.TrimPrefix(longWorker, "celery@")
				e.Present |= state.FieldName | state.FieldQueue | state.FieldRoutingKey
			case state.TaskReceived:
				e.Present |= state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRetries | state.FieldRootID
				if parent != "" {
					e.Present |= state.FieldParentID
				}
			case state.TaskSucceeded:
				e.Result, e.Runtime = strings.Repeat("result", 60), 1
				e.Present |= state.FieldResult | state.FieldRuntime
			case state.TaskFailed:
				e.Exception = "ExternalInventoryProviderConnectionRefusedError('" + strings.Repeat("https://inventory.example/", 12) + "')"
				e.Traceback = "Traceback (most recent call last):\n" + strings.Repeat("  File \"/srv/application/releases/20261121/company/warehouse/reconciliation/tasks.py\", line 40, in synchronise\n", 8)
				e.Present |= state.FieldException | state.FieldTraceback
			}
			events = append(events, e)
		}
	}
	for i := range 12 { // of a schedule
		at := noon + int64(i)*60_000_000
		events = append(events, &state.Event{
			Kind: state.TaskSent, Hostname: "beat@" + strings.TrimPrefix(longWorker, "celery@"), PID: 9, ID: fmt.Sprint("scheduled-", i), Name: longName,
			Args: "()", Kwargs: "{}", Queue: longQueue, Clock: int64(1000 + i), Micros: at, ReceivedMicros: at,
			Present: present | state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldQueue,
		})
	}
	return events
}

// visited are pages of one dashboard, by their paths below its prefix.
type visited struct {
	base   string
	paths  []string
	happen func() // has events arrive, nil if none can
}

// visitedPage is one of them.
type visitedPage struct {
	address string
	happen  func()
}

// noPages are the patterns of GET that answer with no page of their own.
var noPages = []string{
	"/assets/*", "/broker", "/dashboard", "/failures/{id}/issue", "/favicon.ico", "/healthcheck", "/healthz", "/login/{provider}", "/metrics", "/readyz", "/task/*",
	"/tasks/datatable", "/worker/*", "/ws",
}

// everyPage returns pages of each kind. Every route of a page is among them: those without a name by their
// pattern, and the test fails if there is another.
func everyPage(t *testing.T) (pages []visitedPage) {
	t.Helper()
	all := []visited{failingPages(t), signInPages(t), forbiddenPages(t), pastPages(t), firingPages(t), clusterPages(t)}
	full := fullPages(t)
	for _, route := range newGuarded(t, "").Registered() {
		if route.Method != http.MethodGet || strings.HasPrefix(route.Pattern, "/api/") || slices.Contains(noPages, route.Pattern) {
			continue
		}
		of := regexp.MustCompile("^" + regexp.MustCompile(`\\\{[^}]*\\\}|\\\*`).ReplaceAllString(regexp.QuoteMeta(route.Pattern), ".+") + `(\?.*)?$`)
		seen := slices.ContainsFunc(append(all, full), func(v visited) bool { return slices.ContainsFunc(v.paths, of.MatchString) })
		switch {
		case seen:
		case strings.ContainsAny(route.Pattern, "*{"):
			t.Errorf("no page of %s is visited: give an address of one", route.Pattern)
		default:
			full.paths = append(full.paths, route.Pattern)
		}
	}
	for _, v := range append(all, full) {
		for _, path := range v.paths {
			pages = append(pages, visitedPage{v.base + path, v.happen})
		}
	}
	return pages
}

// fullPages are those of a cluster with everything but failures that are grouped.
func fullPages(t *testing.T) visited {
	t.Helper()
	s, c := newWorkersServer(t)
	c.auditable()
	c.mu.Lock()
	c.answers[longWorker] = answers(longQueue, "mail")
	c.mu.Unlock()
	lately(s)
	s.backend.backend.Apply(treeEvents(8)...)
	s.backend.backend.Apply(longEvents()...)
	request := command.ControlRequest{Method: "pool_grow", Arguments: map[string]any{"n": 1}, Workers: []string{"celery@a"}}
	if _, err := c.commands.Control(t.Context(), command.Caller{}, request); err != nil {
		t.Fatal(err)
	}
	view := history.View{Name: "Failed reconciliations of external inventory providers", Query: "state:failure name:" + longName}
	view, err := c.store.SaveView(t.Context(), view)
	if err != nil {
		t.Fatal(err)
	}
	const id = "9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c01"
	v := visited{base: "http://" + s.address + s.prefix, happen: s.happenings(), paths: []string{
		"/tasks?q=state%3Afailure&chart=24h,name", "/tasks?q=stat%3Afailure", "/tasks?q=nothing", "/tasks?q=name%3A" + longName,
		"/tasks/task-28", "/tasks/task-02", "/tasks/" + id, "/tasks/nope", "/nothing",
		"/workers/idempotency?all=1", "/workflows?state=lost", "/workflows/task-02",
		"/workflows/r", "/workflows/r?tab=graph", "/workflows/r?tab=spacetime", "/workflows/r?order=time&tab=spacetime",
		"/workflows/9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c00", "/workflows/9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c00?tab=graph",
		"/workflows/9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c00?tab=spacetime",
		"/duplicates?verdict=skipped", "/queues/mail", "/queues/" + longQueue, "/outbox?state=dead", "/outbox/1",
		"/act/publish", "/act/exclude?name=billing.charge", "/act/exclude?name=billing.charge&check=1&fields=x",
		"/act/task?action=terminate&id=task-02", "/act/task?action=retry&id=task-28", "/act/task?action=retry&id=" + id,
		"/act/worker?method=pool_grow&worker=celery%40a", "/act/worker?method=shutdown&worker=" + url.QueryEscape(longWorker), "/act/purge?queue=mail",
		"/act/release?key=qo_stuck", "/act/alert?kind=threshold", "/act/dismiss?id=" + id, "/act/forget?worker=" + url.QueryEscape(longWorker),
		"/act/outbox?action=discard&id=1", "/views/" + view.ID,
	}}
	for _, tab := range []string{"now", "history", "queues", "tasks", "config", "system", "clock", "commands"} {
		v.paths = append(v.paths, "/workers/celery@a?tab="+tab, "/workers/"+url.PathEscape(longWorker)+"?tab="+tab)
	}
	return v
}

// failingPages are those of a history with groups of failures and of duplicates.
func failingPages(t *testing.T) visited {
	t.Helper()
	s := newServer(t, "/ops", nil)
	duplicates := templates.DuplicatePath(repeatedCall(t, s.backend.backend))
	s.backend.backend.Apply(longEvents()...)
	v := visited{base: "http://" + s.address + s.prefix, happen: s.happenings(), paths: []string{
		"/", "/tasks", "/failures", "/duplicates", duplicates, "/schedules", "/types?last=30d", "/types/billing.charge?last=30d",
		"/types/" + longName + "?last=30d", "/workflows",
		"/tasks/9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c01/compare?with=9b2c7c1e-8a54-4a9b-9a0c-6f1f2a3b4c03",
	}}
	failures, err := s.backend.History().FailureGroups(t.Context(), history.FailureRequest{Limit: 10, Now: time.UnixMicro(noon)})
	if err != nil || len(failures.Groups) != 2 {
		t.Fatalf("%d groups of failures, %v; want 2", len(failures.Groups), err)
	}
	for i := range failures.Groups {
		v.paths = append(v.paths, templates.FailurePath(failures.Groups[i].ID.String()))
	}
	return v
}

// forbiddenPages are what people see who may look at the cluster but neither act nor read what tasks carry.
func forbiddenPages(t *testing.T) visited {
	t.Helper()
	h := newGuarded(t, "/ops")
	serveSockets(t, h)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("X-User", "ann")
		r.Header.Set("X-Groups", "viewer")
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	return visited{base: proxy.URL + "/ops", paths: []string{"/outbox/audit", "/duplicates", "/tasks", "/tasks/task-01", "/settings"}}
}

// pastPages are pages of a time past: with banner and scrubber, and one that has no past.
func pastPages(t *testing.T) visited {
	t.Helper()
	s := newServer(t, "/ops", nil)
	s.stop()
	s.options = func(o *web.Options) { withPast(t, o) }
	s.start()
	v := visited{base: "http://" + s.address + s.prefix, happen: s.happenings()}
	for _, path := range []string{"/", "/tasks", "/tasks/task-03", "/workers", "/workers/celery@a", "/workflows/task-03", "/failures", "/schedules", "/settings"} {
		v.paths = append(v.paths, path+"?"+after(10500*time.Millisecond))
	}
	return v
}
