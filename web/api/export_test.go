package api_test

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/api"
)

// export answers a request for an export.
func export(t *testing.T, h http.Handler, query string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/tasks/export?"+query, nil))
	if w.Code != http.StatusOK {
		t.Fatalf("export %s = %d %s", query, w.Code, w.Body)
	}
	return w
}

func table(t *testing.T, body string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil {
		t.Fatalf("read CSV: %v\n%s", err, body)
	}
	return rows
}

func TestExportAsCSV(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Date(2026, 11, 21, 12, 30, 5, 0, time.UTC) }
	h := newAPI(api.Options{Backend: newBackend(t), Now: now})
	tests := map[string]struct {
		query string
		want  [][]string
	}{
		"usual columns": {"q=state:success", [][]string{
			{"state", "name", "id", "args", "kwargs", "worker", "queue", "wait_seconds", "runtime_seconds", "retries", "updated_at"},
			{"SUCCESS", "shop.add", taskID, "(1, 2)", "{}", "celery@w1", "celery", "2", "0.25", "0", "2026-11-21T00:00:05.000000Z"},
		}},
		"chosen columns in their order": {"q=name:shop.pay&cols=exc,id,finished,sent&format=csv", [][]string{
			{"exception", "id", "finished_at", "sent_at"},
			{"ValueError('x')", failedID, "2026-11-21T00:00:07.000000Z", ""},
		}},
		"sorted": {"sort=received&cols=id", [][]string{{"id"}, {taskID}, {failedID}, {oddID}}},
		"none":   {"q=nothing-like-it&cols=clock,trace", [][]string{{"clock", "traceback"}}},
		"all other columns": {"q=state:success&cols=clock,client,exchange,routing_key,root,parent,eta,expires,result,received,started", [][]string{
			{"clock", "client", "exchange", "routing_key", "root_id", "parent_id", "eta", "expires", "result", "received_at", "started_at"},
			{
				"1152921504606846976", "gen7@client", "", "celery", taskID, "", "2026-11-20T23:00:01.500000Z", "in a while", "3",
				"2026-11-21T00:00:03.000000Z", "2026-11-21T00:00:04.000000Z",
			},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := export(t, h, tt.query)
			if diff := cmp.Diff(tt.want, table(t, w.Body.String())); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
			if got, want := w.Header().Get("Content-Disposition"), `attachment; filename="umbel-tasks-20261121T123005Z.csv"`; got != want {
				t.Errorf("Content-Disposition = %s, want %s", got, want)
			}
			if got, want := w.Header().Get("Content-Type"), "text/csv; charset=utf-8; header=present"; got != want {
				t.Errorf("Content-Type = %s, want %s", got, want)
			}
		})
	}
}

func TestExportTamesFormulas(t *testing.T) {
	t.Parallel()
	const text = "\uFEFF=HYPERLINK(\"http://evil\",\"x\")"
	b := emptyBackend(t)
	b.apply(received("celery@w1", 1, text, text, "", ""))
	h := newAPI(api.Options{Backend: b})
	rows := table(t, export(t, h, "cols=name,id,clock").Body.String())
	if diff := cmp.Diff([]string{"'" + text, "'" + text}, rows[1][:2]); diff != "" {
		t.Errorf("row of %q (-want +got):\n%s", text, diff)
	}
}

func TestExportAsJSONLHasTheFieldsOfATask(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	w := export(t, h, "format=jsonl&q=state:success,failure&cols=id")
	var got []map[string]any
	for s := bufio.NewScanner(w.Body); s.Scan(); {
		got = append(got, decode(t, s.Text()))
	}
	want := []map[string]any{
		decode(t, get(t, h, "/tasks/"+failedID).Body.String()), decode(t, get(t, h, "/tasks/"+taskID).Body.String()),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if got, want := w.Header().Get("Content-Type"), "application/x-ndjson"; got != want {
		t.Errorf("Content-Type = %s, want %s", got, want)
	}
}

func TestExportGoesThroughAllPages(t *testing.T) {
	t.Parallel()
	const tasks = 1201 // three pages of 500
	b := emptyBackend(t)
	for i := range tasks {
		b.apply(received("celery@w1", 1, fmt.Sprint(i), "n", "", ""))
	}
	h := newAPI(api.Options{Backend: b})
	rows := table(t, export(t, h, "cols=id").Body.String())
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		seen[row[0]] = true
	}
	if len(rows) != 1+tasks || len(seen) != tasks {
		t.Errorf("export has %d rows of %d tasks, want %d", len(rows)-1, len(seen), tasks)
	}
}

// endless is a backend that always has one more page, until it fails.
type endless struct {
	*backend
	pages atomic.Int64
	fail  int64
}

func (e *endless) Tasks(ctx context.Context, r history.TaskRequest) (history.TaskPage, error) {
	n := e.pages.Add(1)
	if err := ctx.Err(); err != nil {
		return history.TaskPage{}, err
	}
	if n == e.fail {
		return history.TaskPage{}, errors.New("disk gone")
	}
	list := make([]state.Task, r.Limit)
	for i := range list {
		list[i] = state.Task{ID: fmt.Sprint(n, "-", i), State: state.Success}
	}
	return history.TaskPage{Tasks: list, Next: &state.Position{ID: list[len(list)-1].ID}}, nil
}

func TestExportThatFailsIsCutOff(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newAPI(api.Options{Backend: &endless{backend: newBackend(t), fail: 4}}))
	defer server.Close()
	resp, err := server.Client().Get(server.URL + "/tasks/export?cols=id")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines, s := 0, bufio.NewScanner(resp.Body)
	for s.Scan() {
		lines++
	}
	if s.Err() == nil {
		t.Errorf("body of %d lines ends as if it were whole", lines)
	}
}

func TestExportThatCannotBeginIsAProblem(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: &endless{backend: newBackend(t), fail: 1}})
	if got, want := get(t, h, "/tasks/export").Code, http.StatusServiceUnavailable; got != want {
		t.Errorf("status = %d, want %d", got, want)
	}
}

func TestExportEndsWhenTheClientLeaves(t *testing.T) {
	t.Parallel()
	b := &endless{backend: newBackend(t)}
	left := make(chan struct{})
	h := newAPI(api.Options{Backend: b})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/tasks/export?format=jsonl", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatalf("first line: %v", err)
	}
	cancel()
	_ = resp.Body.Close()
	select {
	case <-left:
	case <-time.After(3 * time.Minute):
		t.Fatal("the export goes on without its client")
	}
}

func TestExportTakesAnyAccept(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	r := httptest.NewRequest(http.MethodGet, "/tasks/export", nil)
	r.Header.Set("Accept", "text/csv")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("Accept text/csv = %d, want 200", w.Code)
	}
}

func TestTotalsAreExactUpTo10000(t *testing.T) {
	t.Parallel()
	b := &endless{backend: newBackend(t)}
	got := decode(t, get(t, newAPI(api.Options{Backend: b}), "/tasks?limit=7").Body.String())
	if got["total"] != nil || got["total_at_least"] != json.Number("7") {
		t.Errorf("total = %v, at least %v, want null, 7", got["total"], got["total_at_least"])
	}
	got = decode(t, get(t, newAPI(api.Options{Backend: newBackend(t)}), "/tasks?limit=1").Body.String())
	if got["total"] != json.Number("3") || got["total_at_least"] != nil {
		t.Errorf("total = %v, at least %v, want 3, null", got["total"], got["total_at_least"])
	}
}
