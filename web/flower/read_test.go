package flower_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/flower"
)

// api is an API over a cluster that the test fills.
type api struct {
	*testcluster.Cluster

	handler http.Handler
}

func newAPI(t testing.TB, o flower.Options, limits state.Options) *api {
	t.Helper()
	a := &api{Cluster: testcluster.New(t, limits)}
	o.Backend = a.Cluster
	compatible, err := flower.New(o)
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	for _, rt := range compatible.Routes() {
		if err := rt.Check(); err != nil {
			t.Error(err)
		}
		r.Method(rt.Method, rt.Pattern, rt.Handler)
	}
	a.handler = r
	return a
}

// get asks as somebody who may see payloads, or not.
func (a *api) get(ctx context.Context, path string, payload bool, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(auth.NewContext(ctx, auth.Grant{Audience: auth.Audience{Role: auth.Viewer, Payload: payload}}), "GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

// succeed applies the events of tasks that succeed, one after the other, from a number on.
func (a *api) succeed(t testing.TB, from, n int) {
	t.Helper()
	var d celery.Decoder
	a.Update(func(cluster *state.Cluster) {
		for i := from; i < from+n; i++ {
			for k, kind := range []string{"task-received", "task-started", "task-succeeded"} {
				d.Decode(json.RawMessage(fmt.Sprintf(
					`{"type": %q, "uuid": "task-%06d", "hostname": "w1@shop", "pid": 7, "clock": %d, "timestamp": %d.5, "utcoffset": 0, "name": "shop.t%d",
					"args": "('secret-%d',)", "kwargs": "{'token': 'hidden'}", "result": "'done-%d'", "runtime": 0.25}`,
					kind, i, 3*i+k+1, 1_700_000_000+3*i+k, i%3, i, i)), 0, func(e *state.Event) { cluster.Apply(e) })
			}
		}
	})
}

var open = flower.Options{Settings: flower.Settings{Unauthenticated: true, Location: time.UTC}}

// ids returns the keys of a list in their order.
func ids(t testing.TB, w *httptest.ResponseRecorder) []string {
	t.Helper()
	o, err := decode(w.Body.String())
	if err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d: %v", w.Code, err)
	}
	return o.(*members).keys
}

// Memory holds 10 of 1,200 tasks.
func TestTasksOfTheHistoryAreListed(t *testing.T) {
	t.Parallel()
	a := newAPI(t, open, state.Options{MaxTasks: 10})
	a.succeed(t, 0, 1200)
	var want []string
	for i := 1199; i >= 0; i-- {
		want = append(want, fmt.Sprintf("task-%06d", i))
	}
	w := a.get(t.Context(), "/api/tasks", true)
	if diff := cmp.Diff(want, ids(t, w)); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	if got := w.Header().Get("X-Total-Count"); got != "1200" {
		t.Errorf("X-Total-Count = %q, want 1200", got)
	}
	for query, want := range map[string][]string{
		"limit=2&offset=1100":                                 want[1100:1102],
		"limit=2&sort_by=received":                            {"task-000000", "task-000001"},
		"limit=2&sort_by=-name":                               {"task-001199", "task-001196"},
		"search=done-77&limit=1":                              {"task-000779"},
		"search=args:secret-1&sort_by=name&limit=1":           {"task-000012"},
		"taskname=SHOP.T2&limit=1":                            {"task-001199"},
		"received_end=2023-11-14+22:13":                       nil,
		"started_start=2023-11-14+23:13&limit=1":              {"task-001199"},
		"started_end=2023-11-14+22:14&sort_by=-state&limit=1": {"task-000012"},
	} {
		got := ids(t, a.get(t.Context(), "/api/tasks?"+query, true))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	if w := a.get(t.Context(), "/api/task/info/task-000003", true); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"task-id": "task-000003"`) {
		t.Errorf("info of a task that only the history has: %d %s", w.Code, w.Body)
	}
}

func TestPayloadsAreHidden(t *testing.T) {
	t.Parallel()
	a := newAPI(t, open, state.Options{})
	a.succeed(t, 0, 3)
	for _, path := range []string{
		"/api/tasks", "/api/tasks?sort_by=name", "/api/task/info/task-000001", table(0, "args", "asc", ""), table(0, "result", "desc", ""),
		"/api/tasks?search=task-0", "/api/tasks?search=shop", table(0, "name", "asc", "shop.t1"),
	} {
		if w := a.get(t.Context(), path, false); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "secret") ||
			strings.Contains(w.Body.String(), "hidden") || strings.Contains(w.Body.String(), "done") || !strings.Contains(w.Body.String(), "task-000001") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, search := range []string{"secret", "args:secret", "kwargs:hidden", "kwargs:token=hidden", "result:done", "done-1", "secret-1 OR done-2"} {
		if got := a.get(t.Context(), "/api/tasks?search="+escape(search), false).Body.String(); got != "{}" && !strings.Contains(got, "You may not search by") {
			t.Errorf("%s tells what is hidden: %s", search, got)
		}
		if got := a.get(t.Context(), "/api/tasks?search="+escape(search), true).Body.String(); got == "{}" {
			t.Errorf("%s finds nothing", search)
		}
	}
	by := func(key string) []string {
		var page struct {
			Data []struct{ UUID string }
		}
		if err := json.Unmarshal(a.get(t.Context(), table(0, key, "desc", ""), false).Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, task := range page.Data {
			list = append(list, task.UUID)
		}
		return list
	}
	if diff := cmp.Diff(by("nope"), by("result")); diff != "" {
		t.Errorf("the order tells what is hidden:\n%s", diff)
	}
}

func TestETag(t *testing.T) {
	t.Parallel()
	a := newAPI(t, open, state.Options{})
	a.succeed(t, 0, 3)
	for _, path := range []string{"/api/tasks", "/api/task/info/task-000001", "/healthcheck", "/api/task/types"} {
		first := a.get(t.Context(), path, true)
		tag := first.Header().Get("ETag")
		if len(tag) != 42 {
			t.Errorf("%s: ETag %q", path, tag)
		}
		if w := a.get(t.Context(), path, true, "If-None-Match", `"x", W/`+tag); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("%s: %d with %d bytes, want 304 with none", path, w.Code, w.Body.Len())
		}
		if w := a.get(t.Context(), path, true, "If-None-Match", `"x"`); w.Code != http.StatusOK || w.Body.String() != first.Body.String() {
			t.Errorf("%s: %d %s, want 200 and the same", path, w.Code, w.Body)
		}
	}
}

func TestLongListsAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	a := newAPI(t, open, state.Options{})
	a.succeed(t, 0, 8000)
	w := a.get(t.Context(), "/api/tasks", true)
	if got := len(ids(t, w)); got != 8000 || w.Body.Len() < 4<<20 || w.Header().Get("ETag") != "" || !w.Flushed && w.Header().Get("Content-Type") == "" {
		t.Errorf("%d tasks in %d bytes with ETag %q", got, w.Body.Len(), w.Header().Get("ETag"))
	}
}

// TestPagesMakeTheList reads lists page by page.
func TestPagesMakeTheList(t *testing.T) {
	t.Parallel()
	a := newAPI(t, open, state.Options{MaxTasks: 20})
	a.succeed(t, 0, 60)
	rapid.Check(t, func(r *rapid.T) {
		query := "/api/tasks?sort_by=" + rapid.SampledFrom([]string{"", "name", "-name", "state", "received", "-started"}).Draw(r, "sort") +
			"&taskname=" + rapid.SampledFrom([]string{"", "shop.t1", "none"}).Draw(r, "name") +
			"&search=" + rapid.SampledFrom([]string{"", "done-1", "state:success", "state:failure"}).Draw(r, "search")
		all := ids(t, a.get(t.Context(), query, true))
		size := rapid.IntRange(7, 30).Draw(r, "size")
		var pages []string
		for offset := 0; offset < 60; offset += size {
			pages = append(pages, ids(t, a.get(t.Context(), query+"&limit="+strconv.Itoa(size)+"&offset="+strconv.Itoa(offset), true))...)
		}
		if !slices.Equal(all, pages) {
			r.Fatalf("%s: pages of %d are %v, want %v", query, size, pages, all)
		}
	})
}
