package web

import (
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/shelf"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/live"
)

type model struct {
	*shelf.Fake
	cluster *state.Cluster
}

func newModel(c *state.Cluster) *model {
	m := &model{cluster: c}
	m.Fake = shelf.New(m.View)
	return m
}

func (m *model) View(f func(c *state.Cluster)) { f(m.cluster) }
func (*model) Changed() <-chan struct{}        { return nil }
func (*model) Health() view.Health             { return view.Health{} }
func (*model) Rates() view.Rates               { return view.Rates{} }

func modelPages() *pages {
	c := state.New(state.Options{})
	for i, kind := range []state.Kind{state.WorkerHeartbeat, state.TaskReceived, state.TaskFailed} {
		c.Apply(&state.Event{
			Kind: kind, Hostname: "celery@a", PID: 7, ID: "id 1", Name: "billing.charge", Clock: int64(1 + i), Micros: 1e15, ReceivedMicros: 1e15,
			Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName,
		})
	}
	m := newModel(c)
	return &pages{
		cluster: m, counts: newCounter(m.Count, func() {}, slog.New(slog.DiscardHandler)), now: func() time.Time { return time.UnixMicro(1e15) }, log: slog.New(slog.DiscardHandler),
		site: templates.URLs{Asset: func(name string) string { return "/" + name }},
	}
}

func TestSnapshotIsWhatThePageShows(t *testing.T) {
	t.Parallel()
	p := modelPages()
	group := fingerprint.Of("", "").ID("billing.charge").String()
	tests := map[string]struct {
		rows int
		show http.HandlerFunc
	}{
		"overview":                             {1, p.overview},
		"tasks":                                {1, p.tasks},
		"workers":                              {1, p.workers},
		"workers?find=celery%40":               {1, p.showTopic(t, "workers?find=celery%40")},
		"workers?find=nobody":                  {0, p.showTopic(t, "workers?find=nobody")},
		"worker?tab=clock/celery@a":            {0, p.showTopic(t, "worker?tab=clock/celery@a")},
		"task/id 1":                            {0, p.showTopic(t, "task/id 1")},
		"worker/celery@a":                      {1, p.showTopic(t, "worker/celery@a")},
		"failures":                             {1, p.failures},
		"failures?show=all":                    {1, p.showTopic(t, "failures?show=all")},
		"failure/" + group:                     {1, p.showTopic(t, "failure/"+group)},
		"tasks?q=state%3Asuccess":              {0, p.showTopic(t, "tasks?q=state%3Asuccess")},
		"tasks?cols=exc%2Cname&sort=-received": {1, p.showTopic(t, "tasks?cols=exc%2Cname&sort=-received")},
	}
	for topic, tc := range tests {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			snap, err := p.Snapshot(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			tc.show(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			page := w.Body.String()
			if want := `data-topic="` + html.EscapeString(topic) + `"`; !strings.Contains(page, want) {
				t.Errorf("page has no %s", want)
			}
			parts, rows := snap.Regions, 0
			for _, l := range snap.Lists {
				parts = append(parts, l.Rows...)
				if l.ID != "chart-rows" {
					rows += len(l.Rows)
				}
			}
			for _, part := range parts {
				if !strings.Contains(page, part.HTML) {
					t.Errorf("page does not hold %q as the snapshot has it", part.ID)
				}
			}
			if rows != tc.rows {
				t.Errorf("snapshot has %d rows, want %d", rows, tc.rows)
			}
			if snap.Version == 0 {
				t.Error("snapshot has no version")
			}
		})
	}
}

func (p *pages) showTopic(t *testing.T, topic string) http.HandlerFunc {
	t.Helper()
	pg, err := p.page(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, r *http.Request) { p.show(w, r, http.StatusOK, pg) }
}

func TestSnapshotOfUnknownTopics(t *testing.T) {
	t.Parallel()
	p := modelPages()
	for _, topic := range []string{
		"", "nope", "failures?", "failures?show=open", "failures?resolved=1", "failuress", "failure/", "failure/nope",
		"failure/0123456789abcdef", "task", "task/", "task/nope", "worker/nope", "workers?find=", "workers?find=a&b", "worker?tab=history/celery@a", "worker?tab=now/celery@a", "worker?tab=clock",
		"taskss", "tasks?", "tasks?limit=0", "tasks?nope=1",
		"tasks?state=SUCCESS", "tasks?q=state%3ASUCCESS", "tasks?q=nope%3A1", "tasks?q=%zz", "overview/", strings.Repeat("x", 1<<16),
	} {
		if _, err := p.Snapshot(t.Context(), topic); !errors.Is(err, live.ErrNoTopic) {
			t.Errorf("Snapshot(%.40q) = %v, want ErrNoTopic", topic, err)
		}
	}
}

// BenchmarkSnapshot renders what one change costs, for all who watch the topic together.
func BenchmarkSnapshot(b *testing.B) {
	c := state.New(state.Options{})
	for i := range int64(10_000) {
		for j, kind := range []state.Kind{state.TaskReceived, state.TaskFailed} {
			c.Apply(&state.Event{
				Kind: kind, Hostname: "celery@a", PID: 7, ID: strconv.FormatInt(i, 10), Name: "billing.charge", Args: "(1, 'cus_7f')",
				Clock: 1 + 2*i + int64(j), Micros: 1e15 + i, ReceivedMicros: 1e15,
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName | state.FieldArgs,
			})
		}
	}
	p := modelPages()
	p.cluster = newModel(c)
	for _, topic := range []string{"overview", "tasks", "tasks?q=state%3Afailure", "workers"} {
		b.Run(topic, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Snapshot(b.Context(), topic); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
