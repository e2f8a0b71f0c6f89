package api_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/gossip"
	"github.com/umbelhq/umbel/web/api"
)

const (
	taskID   = "3f2a9a54-6c1e-4c2a-9a3f-0d7c5c1b2a01"
	failedID = "3f2a9a54-6c1e-4c2a-9a3f-0d7c5c1b2a02"
	oddID    = "odd/../id?é%2F \"<x>&"
	oddName  = "celery@höst/1%2F#?"
)

// start is 2026-11-21T00:00:00Z in µs.
const start = int64(1_795_219_200_000_000)

// backend is a cluster whose health and rates a test sets.
type backend struct {
	*testcluster.Cluster
	health view.Health
	rates  view.Rates
}

func (b *backend) Health() view.Health { return b.health }
func (b *backend) Rates() view.Rates   { return b.rates }

// emptyBackend returns a backend that knows nothing yet.
func emptyBackend(t testing.TB) *backend {
	t.Helper()
	return &backend{Cluster: testcluster.New(t, state.Options{})}
}

// apply folds in events, second by second.
func (b *backend) apply(events ...state.Event) {
	list := make([]*state.Event, len(events))
	for i := range events {
		e := &events[i]
		list[i] = e
		at := start + int64(i)*1_000_000
		e.Micros, e.ReceivedMicros = at, at
		if e.Clock == 0 {
			e.Clock = int64(i + 1)
		}
	}
	b.Apply(list...)
}

// newBackend returns a cluster with a task of each kind that matters here.
func newBackend(t testing.TB) *backend {
	t.Helper()
	b := emptyBackend(t)
	w1, w2 := "celery@w1", oddName
	b.apply(
		heartbeat(w1, 11),
		heartbeat(w2, 22),
		state.Event{
			Kind: state.TaskSent, Hostname: "gen7@client", ID: taskID, Name: "shop.add", Args: "(1, 2)", Kwargs: "{}",
			RootID: taskID, Queue: "celery", Exchange: "", RoutingKey: "celery", ETA: "2026-11-21T00:00:01.5+01:00",
			Expires: "in a while",
			Present: state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRootID | state.FieldQueue |
				state.FieldRoutingKey | state.FieldRetries | state.FieldETA | state.FieldExpires,
		},
		received(w1, 11, taskID, "shop.add", "2026-11-21T00:00:01.5+01:00", "in a while"),
		state.Event{Kind: state.TaskStarted, Hostname: w1, PID: 11, ID: taskID},
		state.Event{
			Kind: state.TaskSucceeded, Hostname: w1, PID: 11, ID: taskID, Result: "3", Runtime: 0.25,
			Present: state.FieldResult | state.FieldRuntime, Clock: 1 << 60,
		},
		received(w2, 22, failedID, "shop.pay", "", ""),
		state.Event{
			Kind: state.TaskFailed, Hostname: w2, PID: 22, ID: failedID, Exception: "ValueError('x')",
			Traceback: "Traceback…", Runtime: math.NaN(),
			Present: state.FieldException | state.FieldTraceback | state.FieldRuntime,
		},
		received(w2, 22, oddID, "shop.odd", "", ""),
	)
	return b
}

func heartbeat(hostname string, pid int64) state.Event {
	return state.Event{
		Kind: state.WorkerHeartbeat, Hostname: hostname, PID: pid, Freq: 2, Active: 1, Processed: 7,
		Load: [3]float64{0.5, 1, 2}, Software: "py-celery", Version: "5.6.0", System: "Linux",
		Present: state.FieldFreq | state.FieldActive | state.FieldProcessed | state.FieldLoad |
			state.FieldSoftware | state.FieldVersion | state.FieldSystem,
	}
}

func received(hostname string, pid int64, id, name, eta, expires string) state.Event {
	e := state.Event{
		Kind: state.TaskReceived, Hostname: hostname, PID: pid, ID: id, Name: name, Args: "(1, 2)", Kwargs: "{}",
		ETA: eta, Expires: expires,
		Present: state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRetries,
	}
	if eta != "" {
		e.Present |= state.FieldETA | state.FieldExpires
	}
	return e
}

// get answers one request, and checks what holds of every answer.
func get(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	check(t, w)
	return w
}

func check(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control = %q, want no-store", got)
	}
	want := "application/json"
	if w.Code >= http.StatusBadRequest {
		want = "application/problem+json"
	}
	if got := w.Header().Get("Content-Type"); got != want && w.Code != http.StatusNotModified {
		t.Errorf("Content-Type of %d = %q, want %q", w.Code, got, want)
	}
}

func decode(t *testing.T, body string) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("decode %s: %v", body, err)
	}
	return v
}

func TestTask(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	got := decode(t, get(t, h, "/tasks/"+taskID).Body.String())
	want := decode(t, `{
		"id": "3f2a9a54-6c1e-4c2a-9a3f-0d7c5c1b2a01", "name": "shop.add", "state": "SUCCESS",
		"args": "(1, 2)", "kwargs": "{}", "result": "3", "exception": null, "traceback": null,
		"worker": "celery@w1", "client": "gen7@client", "queue": "celery", "exchange": null, "routing_key": "celery",
		"priority": null, "retries": 0, "eta": "2026-11-20T23:00:01.500000Z", "expires": "in a while",
		"root_id": "3f2a9a54-6c1e-4c2a-9a3f-0d7c5c1b2a01", "parent_id": null, "children": [], "group_id": null,
		"sent_at": "2026-11-21T00:00:02.000000Z", "received_at": "2026-11-21T00:00:03.000000Z",
		"started_at": "2026-11-21T00:00:04.000000Z", "succeeded_at": "2026-11-21T00:00:05.000000Z",
		"failed_at": null, "retried_at": null, "revoked_at": null, "rejected_at": null,
		"updated_at": "2026-11-21T00:00:05.000000Z", "wait_seconds": 2, "wait_raw_seconds": 2, "runtime_seconds": 0.25,
		"clock": "1152921504606846976",
		"executions": [{
			"attempt": 0, "worker": "celery@w1", "pid": 11, "state": "SUCCESS", "name": "shop.add", "inferred": false, "replaced": false,
			"result": "3", "exception": null, "traceback": null,
			"received_at": "2026-11-21T00:00:03.000000Z", "started_at": "2026-11-21T00:00:04.000000Z",
			"succeeded_at": "2026-11-21T00:00:05.000000Z", "failed_at": null, "retried_at": null,
			"revoked_at": null, "rejected_at": null, "runtime_seconds": 0.25,
			"revoked_reason": null, "revoked_signal": null
		}],
		"revoked_reason": null, "revoked_signal": null,
		"redelivered": false, "orphaned": false, "lost": null, "dismissed": null, "returned": false, "truncated": false
	}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("task (-want +got):\n%s", diff)
	}
}

func TestTaskEvents(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	got := decode(t, get(t, h, "/tasks/"+taskID+"/events").Body.String())
	first, _ := json.Marshal(got["items"].([]any)[1])
	want := decode(t, `{
		"type": "task-received", "hostname": "celery@w1", "pid": 11, "occurred_at": "2026-11-21T00:00:03.000000Z",
		"clock": 4, "repaired_clock": 4
	}`)
	if diff := cmp.Diff(want, decode(t, string(first))); diff != "" {
		t.Errorf("second event (-want +got):\n%s", diff)
	}
	if got, want := got["total"], json.Number("4"); got != want {
		t.Errorf("total = %v, want %v", got, want)
	}
}

func TestPagesOfWorkers(t *testing.T) {
	t.Parallel()
	b := emptyBackend(t)
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("celery@w%d", i))
	}
	for _, i := range []int{3, 0, 6, 2, 5, 1, 4} {
		b.apply(state.Event{Kind: state.WorkerHeartbeat, Hostname: want[i], Freq: 2})
	}
	h := newAPI(api.Options{Backend: b})
	for _, limit := range []int{1, 2, 3, 7, 500} {
		var got []string
		path := fmt.Sprintf("/workers?limit=%d", limit)
		for next := path; next != ""; {
			var page struct {
				Items []struct{ Name string }
				Next  string
				Total int
			}
			if err := json.Unmarshal(get(t, h, next).Body.Bytes(), &page); err != nil || page.Total != 7 || len(page.Items) > limit {
				t.Fatalf("%s: %+v, %v, want at most %d of 7", next, page, err, limit)
			}
			for _, w := range page.Items {
				got = append(got, w.Name)
			}
			if next = ""; page.Next != "" {
				next = path + "&cursor=" + page.Next
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestWorker(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	got := decode(t, get(t, newAPI(api.Options{Backend: b}), "/workers/celery@w1").Body.String())
	want := decode(t, `{
		"name": "celery@w1", "pid": 11, "status": "online", "last_heartbeat_at": "2026-11-21T00:00:00.000000Z",
		"freq_seconds": 2, "clock_offset_seconds": -0.000002, "clock_offset_low_seconds": -0.002002, "clock_offset_high_seconds": null, "clock_set_at": null, "active": 1, "processed": 7, "load": [0.5, 1, 2], "software": "py-celery",
		"version": "5.6.0", "system": "Linux", "reported_at": null, "memory_bytes": null, "failure_share": null, "restarts": 0, "clock": "1152921504606846976",
		"queues": null, "pool": null
	}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("worker (-want +got):\n%s", diff)
	}
}

func TestOverview(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	b.rates = view.Rates{Events: 9.5, Received: 3, Succeeded: 2, Failed: 1}
	b.health = view.Health{
		Ready: true, Messages: 8, Events: 9, Latency: 1500 * time.Microsecond,
		Rejected: map[string]uint64{"malformed JSON": 2},
		Broker: view.BrokerHealth{
			URL: "amqp://u:***@h//", Since: time.UnixMicro(start), LastError: "connection refused",
			NextAttemptAt: time.UnixMicro(start + 1), Attempts: 3,
			Loss: view.Loss{
				Ephemeral: true, Outages: 2, OutageTime: 34500 * time.Millisecond, LastOutage: time.UnixMicro(start), MissedTasks: 12, Dropped: 7,
			},
		},
		Store: view.StoreHealth{
			LastError: "the disk is full", FailedAt: time.UnixMicro(start + 1), Since: time.UnixMicro(start),
			PendingEvents: 31, UnsavedTasks: 4, Backpressure: true,
		},
		Notices:        []string{"a file was set aside"},
		Gossip:         gossip.Report{Islands: [][]string{{"celery@w1", "celery@w2"}}, Deaf: []gossip.Deaf{{Worker: "celery@w3", Speaker: "celery@w1", Since: start}}},
		MissingStarted: 5,
		Watermark: state.Watermark{
			Micros: start, Bounded: true, Worker: "celery@w1", Behind: true, Within: 6_000_000, Workers: 2, Uncounted: 1, UncountedNames: []string{"celery@w3"},
		},
		LateEvents: 4,
		Gaps: []view.Gap{{
			Worker: "celery@w1", PID: 11, Missing: 3, After: 880, Before: 905, AfterMicros: start, BeforeMicros: start + 10_000_000,
		}},
	}
	got := decode(t, get(t, newAPI(api.Options{Backend: b}), "/overview").Body.String())
	want := decode(t, `{
		"counts": {
			"tasks": 3,
			"by_state": {"PENDING": 0, "RECEIVED": 1, "STARTED": 0, "RETRY": 0, "SUCCESS": 1, "FAILURE": 1, "REVOKED": 0,
				"REJECTED": 0},
			"by_name": {"shop.add": 1, "shop.pay": 1, "shop.odd": 1},
			"workers": {"online": 2, "late": 0, "offline": 0, "stopping": 0}, "running": 0, "unreachable": 0, "lost": 0, "dismissed": 0, "orphaned": 0, "returned": 0, "evicted": 0
		},
		"rates": {"events": 9.5, "received": 3, "succeeded": 2, "failed": 1, "retried": 0},
		"health": {
			"ready": true, "restoring": false, "messages": 8, "events": 9, "latency_seconds": 0.0015, "rejected": {"malformed JSON": 2},
			"missing_started": 5, "gaps": [{"worker": "celery@w1", "pid": 11, "task_id": null, "missing": 3, "after_clock": 880, "before_clock": 905,
				"after": "2026-11-21T00:00:00.000000Z", "before": "2026-11-21T00:00:10.000000Z"}],
			"watermark": {"complete_to": "2026-11-21T00:00:00.000000Z", "bounded": true, "worker": "celery@w1", "behind": true, "workers": 2,
				"uncounted": 1, "uncounted_names": ["celery@w3"]}, "late_events": 4,
			"gossip": {"islands": [["celery@w1", "celery@w2"]], "deaf": [{"worker": "celery@w3", "speaker": "celery@w1", "since": "2026-11-21T00:00:00.000000Z", "longer": false}], "deaf_total": 1},
			"broker": {
				"url": "amqp://u:***@h//", "connected": false, "since": "2026-11-21T00:00:00.000000Z",
				"last_event_at": null, "last_error": "connection refused", "next_try_at": "2026-11-21T00:00:00.000001Z",
				"attempts": 3,
				"loss": {
					"forgets": true, "outages": 2, "outage_seconds": 34.5, "last_outage_at": "2026-11-21T00:00:00.000000Z",
					"missed_tasks": 12, "dropped_messages": 7
				}
			},
			"store": {
				"last_error": "the disk is full", "failed_at": "2026-11-21T00:00:00.000001Z",
				"since": "2026-11-21T00:00:00.000000Z", "next_try_at": null, "waiting": 31, "unsaved": 4, "paused": true, "active_bytes": 0, "over_max_size": false,
				"notices": ["a file was set aside"]
			}
		}
	}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("overview (-want +got):\n%s", diff)
	}
}

func TestOverviewNamesTheMostFrequentTasks(t *testing.T) {
	t.Parallel()
	b := emptyBackend(t)
	for i := range 151 {
		b.apply(received("celery@w1", 1, fmt.Sprint("id-", i), fmt.Sprintf("task%03d", min(i, 149)), "", ""))
	}
	got := decode(t, get(t, newAPI(api.Options{Backend: b}), "/overview").Body.String())
	names := got["counts"].(map[string]any)["by_name"].(map[string]any)
	if got, want := len(names), 100; got != want {
		t.Errorf("names = %d, want %d", got, want)
	}
	if got, want := names["task149"], json.Number("2"); got != want {
		t.Errorf("count of the most frequent name = %v, want %v", got, want)
	}
}

func TestTasksFilters(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	tests := map[string][]string{
		"":                                    {oddID, failedID, taskID},
		"?state=success,Failure":              {failedID, taskID},
		"?state=received":                     {oddID},
		"?state=CUSTOM":                       {},
		"?name=shop.pay&name=shop.odd":        {oddID, failedID},
		"?worker=" + url.QueryEscape(oddName): {oddID, failedID},
		"?q=valueerror":                       {failedID},
		"?root=" + taskID:                     {taskID},
		"?state=SUCCESS&name=shop.pay":        {},
		"?limit=1":                            {oddID},
	}
	for target, want := range tests {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			got := ids(decode(t, get(t, h, "/tasks"+target).Body.String()))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("ids (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTasksPages(t *testing.T) {
	t.Parallel()
	b := emptyBackend(t)
	var all []string
	for i := range 7 {
		all = append([]string{fmt.Sprintf("id %d/é", i)}, all...)
		b.apply(received("celery@w1", 1, all[0], "n", "", ""))
	}
	h := newAPI(api.Options{Backend: b})
	page := func(cursor any) map[string]any {
		target := "/tasks?limit=3"
		if cursor != nil {
			target += "&cursor=" + url.QueryEscape(cursor.(string))
		}
		return decode(t, get(t, h, target).Body.String())
	}
	first := page(nil)
	second := page(first["next"])
	third := page(second["next"])
	got := append(append(ids(first), ids(second)...), ids(third)...)
	if diff := cmp.Diff(all, got); diff != "" {
		t.Errorf("ids on three pages (-want +got):\n%s", diff)
	}
	if first["prev"] != nil || third["next"] != nil {
		t.Errorf("list goes on beyond its ends: prev %v, next %v", first["prev"], third["next"])
	}
	if diff := cmp.Diff(ids(second), ids(page(third["prev"]))); diff != "" {
		t.Errorf("page before the third (-second +got):\n%s", diff)
	}
	if got, want := first["total"], json.Number("7"); got != want {
		t.Errorf("total = %v, want %v", got, want)
	}
}

// TestWorkersAreSorted walks through pages in orders other than that of names.
func TestWorkersAreSorted(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	walk := func(order string) (names []string) {
		path := "/workers?limit=1&sort=" + order
		for path != "" {
			list := decode(t, get(t, h, path).Body.String())
			for _, item := range list["items"].([]any) {
				names = append(names, item.(map[string]any)["name"].(string))
			}
			path = ""
			if next, ok := list["next"].(string); ok {
				path = "/workers?limit=1&sort=" + order + "&cursor=" + next
			}
		}
		return names
	}
	byName := walk("name")
	if len(byName) < 2 || !slices.IsSorted(byName) {
		t.Fatalf("workers by name = %q", byName)
	}
	reversed := slices.Clone(byName)
	slices.Reverse(reversed)
	if diff := cmp.Diff(reversed, walk("-name")); diff != "" {
		t.Errorf("workers by -name (-want +got):\n%s", diff)
	}
	if got := walk("-processed"); len(got) != len(byName) || got[1] != "celery@w1" {
		t.Errorf("workers by -processed = %q, want celery@w1, which has accepted fewer, last", got)
	}
	for _, path := range []string{"/workers?sort=nothing", "/workers?sort=-load&cursor=bm9ib2R5"} {
		if got := get(t, h, path).Code; got != http.StatusBadRequest {
			t.Errorf("%s gets %d, want 400", path, got)
		}
	}
}
