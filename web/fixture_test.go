package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// noon is 2026-11-21 12:00 UTC in µs.
const noon = int64(1_795_262_400_000_000)

// backend is a cluster whose health and rates a test sets.
type backend struct {
	*testcluster.Cluster
	health view.Health
	rates  view.Rates
}

func (b *backend) Health() view.Health { return b.health }
func (b *backend) Rates() view.Rates   { return b.rates }

// newBackend has a cluster with two workers and tasks in several states.
func newBackend(t testing.TB, o state.Options) *backend {
	t.Helper()
	b := &backend{Cluster: testcluster.New(t, o), health: view.Health{
		Ready: true, Messages: 4, Events: 31,
		Rejected: map[string]uint64{"malformed": 3, "clock": 1, "from_the_future": 2},
		Broker: view.BrokerHealth{
			URL: "amqp://guest:***@rabbit:5672//", Connected: true,
			Since: time.UnixMicro(noon), LastEventAt: time.UnixMicro(noon),
		},
	}}
	b.Apply(paintedEvents()...)
	return b
}

func paintedEvents() []*state.Event {
	var events []*state.Event
	for i, w := range []string{"celery@a", "celery@b/1%20ü"} {
		events = append(events, &state.Event{
			Kind: state.WorkerHeartbeat, Hostname: w, PID: int64(40 + i), Clock: 1, Micros: noon, ReceivedMicros: noon, Freq: 2,
			Present: state.FieldFreq | state.FieldClock | state.FieldPID | state.FieldTimestamp,
		})
	}
	for i := range 30 {
		id := fmt.Sprintf("task-%02d", i)
		events = append(events, taskEvent(state.TaskReceived, id, 3*i), taskEvent(state.TaskStarted, id, 3*i+1))
		switch i % 3 {
		case 0:
			events = append(events, taskEvent(state.TaskSucceeded, id, 3*i+2))
		case 1:
			events = append(events, taskEvent(state.TaskFailed, id, 3*i+2))
		}
	}
	return events
}

// happen applies the event of a task at a second after noon.
func (b *backend) happen(kind state.Kind, id string, second int) {
	b.Apply(taskEvent(kind, id, second))
}

func taskEvent(kind state.Kind, id string, second int) *state.Event {
	e := &state.Event{
		Kind: kind, Hostname: "celery@a", PID: 40, ID: id, Name: "billing.charge", Args: "(1,)", Kwargs: "{}",
		Clock: int64(10 + second), Micros: noon + int64(second)*1_000_000, ReceivedMicros: noon,
		Present: state.FieldClock | state.FieldPID | state.FieldTimestamp,
	}
	if kind == state.TaskReceived {
		e.Present |= state.FieldName | state.FieldArgs | state.FieldKwargs | state.FieldRetries
	}
	if kind == state.TaskFailed {
		e.Exception, e.Traceback = "ValueError('<b>')", "Traceback: <b>"
		e.Present |= state.FieldException | state.FieldTraceback
	}
	return e
}

// dashboard shows b below /ops.
func dashboard(t *testing.T, b web.Backend) http.Handler {
	t.Helper()
	h, err := web.New(web.Options{Backend: b, Prefix: "/ops", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func visit(t testing.TB, h http.Handler, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
	return w
}

// find returns the unescaped groups of every match.
func find(pattern, page string) []string {
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(page, -1) {
		found = append(found, html.UnescapeString(m[1]))
	}
	return found
}
