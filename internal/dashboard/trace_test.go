package dashboard_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/trace"
	"github.com/umbelhq/umbel/state"
)

// someTrace is a trace of tasks that were started 10 ms apart.
func someTrace(t *testing.T, tasks int) []byte {
	t.Helper()
	noon := time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)
	c := state.New(state.Options{Track: true})
	for i := range tasks {
		at := noon.Add(time.Duration(i) * 10 * time.Millisecond).UnixMicro()
		e := state.Event{
			Kind: state.TaskReceived, ID: fmt.Sprintf("task-%04d", i), Hostname: "w@a", PID: 7, Clock: int64(2*i + 1), Micros: at, ReceivedMicros: at,
			Name: "shop.pay", Present: state.FieldName,
		}
		c.Apply(&e)
		e.Kind, e.Clock, e.Present, e.ReceivedMicros = state.TaskStarted, e.Clock+1, 0, at+1
		c.Apply(&e)
	}
	b := trace.Builder{Header: trace.Header{Cluster: "amqp://a", MadeAt: noon, Until: noon.Add(time.Minute)}}
	for _, u := range c.TakeUnsaved(tasks) {
		if _, err := b.Task(u.View.ID, u.Events); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if _, err := b.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestATraceIsShown(t *testing.T) {
	t.Parallel()
	whole := someTrace(t, 2_500)
	for name, tc := range map[string]struct {
		file []byte
		want string
	}{
		"whole":   {whole, `As of <time datetime="2026-09-21T12:01:00.000Z"`},
		"cut off": {whole[:len(whole)*3/4], `Cut off at <time datetime="2026-09-21T12:00:`},
	} {
		d, err := dashboard.NewTrace(t.Context(), dashboard.Options{Logger: slog.New(slog.DiscardHandler)}, bytes.NewReader(tc.file))
		if err != nil {
			t.Fatal(err)
		}
		for path, also := range map[string]string{
			"/": "Trace of all tasks", "/tasks": "shop.", "/tasks/task-0007": "Started", "/workers/w@a": "w@a", "/tasks?at=2026-09-21T12:00:01.000000Z": ">End<",
			"/settings": "Not found", "/nowhere": "Not found",
		} {
			w := httptest.NewRecorder()
			d.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
			if body := w.Body.String(); !strings.Contains(body, tc.want) || !strings.Contains(body, also) || strings.Contains(body, "data-topic") {
				t.Errorf("%s, %s: %d without %q or %q, or live", name, path, w.Code, tc.want, also)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := dashboard.NewTrace(t.Context(), dashboard.Options{Logger: slog.New(slog.DiscardHandler)}, strings.NewReader("hello"))
	if wrong, ok := errors.AsType[*dashboard.TraceError](err); !ok || !errors.Is(wrong, trace.ErrNotTrace) {
		t.Errorf("no trace: %v", err)
	}
}
