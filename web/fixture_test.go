package web_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/shelf"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// noon is 2026-11-21 12:00 UTC in µs.
const noon = int64(1_795_262_400_000_000)

// backend is a fake backend that does not change.
type backend struct {
	*shelf.Fake
	mu      sync.Mutex // guards cluster
	cluster *state.Cluster
	health  view.Health
	rates   view.Rates
}

func (b *backend) View(f func(c state.View)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.cluster)
}
func (b *backend) Changed() <-chan struct{} { return nil }
func (b *backend) Health() view.Health      { return b.health }
func (b *backend) Rates() view.Rates        { return b.rates }

// newBackend has a cluster with two workers and tasks in several states.
func newBackend(o state.Options) *backend {
	b := &backend{cluster: state.New(o), health: view.Health{
		Ready: true, Messages: 4, Events: 31,
		Rejected: map[string]uint64{"malformed": 3, "clock": 1, "from_the_future": 2},
		Broker: view.BrokerHealth{
			URL: "amqp://guest:***@rabbit:5672//", Connected: true,
			Since: time.UnixMicro(noon), LastEventAt: time.UnixMicro(noon),
		},
	}}
	b.Fake = shelf.New(b.View)
	for i, w := range []string{"celery@a", "celery@b/1%20ü"} {
		b.cluster.Apply(&state.Event{
			Kind: state.WorkerHeartbeat, Hostname: w, PID: int64(40 + i), Clock: 1, Micros: noon, ReceivedMicros: noon, Freq: 2,
			Present: state.FieldFreq | state.FieldClock | state.FieldPID | state.FieldTimestamp,
		})
	}
	for i := range 30 {
		id := fmt.Sprintf("task-%02d", i)
		b.happen(state.TaskReceived, id, 3*i)
		b.happen(state.TaskStarted, id, 3*i+1)
		switch i % 3 {
		case 0:
			b.happen(state.TaskSucceeded, id, 3*i+2)
		case 1:
			b.happen(state.TaskFailed, id, 3*i+2)
		}
	}
	return b
}

// happen applies the event of a task at a second after noon.
func (b *backend) happen(kind state.Kind, id string, second int) {
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
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cluster.Apply(e)
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

func visit(t *testing.T, h http.Handler, target string) *httptest.ResponseRecorder {
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
