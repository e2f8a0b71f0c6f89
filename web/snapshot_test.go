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

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/live"
)

func modelPages(t *testing.T) *pages {
	t.Helper()
	c := testcluster.New(t, state.Options{})
	for i, kind := range []state.Kind{state.WorkerHeartbeat, state.TaskReceived, state.TaskFailed} {
		c.Apply(&state.Event{
			Kind: kind, Hostname: "celery@a", PID: 7, ID: "id 1", Name: "billing.charge", Clock: int64(1 + i), Micros: 1e15, ReceivedMicros: 1e15,
			Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName,
		})
	}
	return newModelPages(c)
}

func newModelPages(b Backend) *pages {
	return newPages(Options{
		Backend: b, Now: func() time.Time { return time.UnixMicro(1e15) }, Logger: slog.New(slog.DiscardHandler),
	}, auth.Everything, templates.URLs{Asset: func(name string) string { return "/" + name }}, nil, func() {})
}

func TestSnapshotIsWhatThePageShows(t *testing.T) {
	t.Parallel()
	p := modelPages(t)
	group := fingerprint.Of("", "").ID("billing.charge").String()
	tests := map[string]int{ // rows by topic
		"/":                                     1,
		"/?chart=7d":                            1,
		"/tasks":                                1,
		"/tasks?q=state%3Asuccess":              0,
		"/tasks?cols=exc%2Cname&sort=-received": 1,
		"/tasks/id%201":                         0,
		"/types":                                1,
		"/types?find=nothing&last=7d":           0,
		"/types/billing.charge":                 0,
		"/types/billing.charge?last=1h":         0,
		"/workers":                              1,
		"/workers?find=celery%40":               1,
		"/workers?find=nobody":                  0,
		"/workers/celery@a":                     1,
		"/workers/celery@a?tab=clock":           0,
		"/failures":                             1,
		"/failures?show=all":                    1,
		"/failures/" + group:                    1,
		"/settings":                             0,
	}
	for topic, wantRows := range tests {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			snap, err := p.Snapshot(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			show(t, p, w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, topic, nil))
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
			if rows != wantRows {
				t.Errorf("snapshot has %d rows, want %d", rows, wantRows)
			}
		})
	}
}

// show serves a request by the route of its URL.
func show(t *testing.T, p *pages, w http.ResponseWriter, r *http.Request) {
	t.Helper()
	for _, rt := range p.routes {
		if _, ok := rt.match(r.URL); ok {
			p.serve(rt)(w, r)
			return
		}
	}
	t.Fatalf("no route has %s", r.URL)
}

func TestSnapshotOfUnknownTopics(t *testing.T) {
	t.Parallel()
	p := modelPages(t)
	for _, topic := range []string{
		"", "nope", "tasks", "/nope", "//tasks", "http://x/tasks", "/failures?show=open", "/failures?resolved=1", "/failuress",
		"/failures/", "/failures/nope", "/failures/0123456789abcdef", "/failures/a/b", "/tasks/", "/tasks/nope", "/tasks/id 1",
		"/tasks/id%201?x=1", "/workers/nope", "/workers?find=", "/workers?find=a&b", "/workers/celery@a?tab=history",
		"/workers/celery@a?tab=now", "/workers/celery@a?tab=clock&refresh=1", "/workers?tab=clock", "/taskss",
		"/tasks?limit=0", "/tasks?nope=1", "/tasks?state=SUCCESS", "/tasks?q=state%3ASUCCESS", "/tasks?q=nope%3A1", "/tasks?q=%zz",
		"/views", "/queues", "/types?last=24h", "/types?sort=-run", "/types?last=2h", "/types?sort=age", "/types/nope", "/types/billing.charge?sort=name", "/overview", "/?chart=nope", strings.Repeat("x", 1<<16),
	} {
		if _, err := p.Snapshot(t.Context(), topic); !errors.Is(err, live.ErrNoTopic) {
			t.Errorf("Snapshot(%.40q) = %v, want ErrNoTopic", topic, err)
		}
	}
}

// BenchmarkSnapshot renders what one change costs, for all who watch the topic together.
func BenchmarkSnapshot(b *testing.B) {
	c := testcluster.New(b, state.Options{})
	var events []*state.Event
	for i := range int64(10_000) {
		for j, kind := range []state.Kind{state.TaskReceived, state.TaskFailed} {
			events = append(events, &state.Event{
				Kind: kind, Hostname: "celery@a", PID: 7, ID: strconv.FormatInt(i, 10), Name: "billing.charge", Args: "(1, 'cus_7f')",
				Clock: 1 + 2*i + int64(j), Micros: 1e15 + i, ReceivedMicros: 1e15,
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName | state.FieldArgs,
			})
		}
	}
	c.Apply(events...)
	p := newModelPages(c)
	for _, topic := range []string{"/", "/tasks", "/tasks?q=state%3Afailure", "/workers"} {
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
