package web_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web"
)

// post sends a form.
func post(t *testing.T, h http.Handler, target string, form url.Values) (status int, location, page string) {
	t.Helper()
	w := request(t, h, http.MethodPost, target, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	return w.Code, w.Header().Get("Location"), w.Body.String()
}

// tabs are the names of the views above a list, the current one in brackets.
func tabs(t *testing.T, h http.Handler, target string) []string {
	t.Helper()
	page := visit(t, h, target).Body.String()
	_, page, _ = strings.Cut(page, `<nav id="views"`)
	page, _, _ = strings.Cut(page, "</nav>")
	var list []string
	for _, tab := range strings.Split(page, "<a ")[1:] {
		name, _, _ := strings.Cut(tab[strings.Index(tab, ">")+1:], "<")
		if name = strings.TrimSpace(name); strings.Contains(tab, "aria-current") {
			name = "[" + name + "]"
		}
		list = append(list, name)
	}
	return list
}

func TestViewsWithoutScripts(t *testing.T) {
	t.Parallel()
	h := dashboard(t, newBackend(t, state.Options{}))
	usual := []string{"Failing now", "Slow now", "Scheduled", "Retrying", "Stuck", "Lost"}
	status, location, _ := post(t, h, "/ops/views", url.Values{
		"name": {"Mine"}, "q": {"name:billing.* state:FAILURE"}, "sort": {"-started"}, "cols": {"id,run"}, "limit": {"7"},
	})
	if want := "/ops/tasks?cols=id%2Crun&q=name%3Abilling.%2A+state%3Afailure&sort=-started"; status != http.StatusSeeOther || location != want {
		t.Fatalf("saving leads with %d to %s, want 303 to %s", status, location, want)
	}
	if diff := cmp.Diff(append(append([]string{"All"}, usual...), "[Mine]"), tabs(t, h, location)); diff != "" {
		t.Errorf("views above the view (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(append(append([]string{"[All]"}, usual...), "Mine"), tabs(t, h, "/ops/tasks?limit=7")); diff != "" {
		t.Errorf("views above all tasks (-want +got):\n%s", diff)
	}

	manage := visit(t, h, "/ops/views").Body.String()
	for _, want := range []string{`value="Mine"`, `action="/ops/views/1"`, `href="/ops/views/1"`, "name:billing.* state:FAILURE"} {
		if !strings.Contains(manage, want) {
			t.Errorf("page of views has no %s", want)
		}
	}
	if status, location, _ = post(t, h, "/ops/views/1", url.Values{"name": {"Ours"}}); status != http.StatusSeeOther || location != "/ops/views" {
		t.Errorf("renaming leads with %d to %s", status, location)
	}
	if got := tabs(t, h, "/ops/tasks"); got[len(got)-1] != "Ours" {
		t.Errorf("views after renaming = %v", got)
	}
	if page := visit(t, h, "/ops/views/1").Body.String(); !strings.Contains(page, `action="/ops/views/1/delete"`) || !strings.Contains(page, "“Ours”") {
		t.Errorf("no question before the view is deleted:\n%s", page)
	}
	if status, location, _ = post(t, h, "/ops/views/1/delete", nil); status != http.StatusSeeOther || location != "/ops/views" {
		t.Errorf("deleting leads with %d to %s", status, location)
	}
	if got := visit(t, h, "/ops/views").Body.String(); !strings.Contains(got, "No saved views") {
		t.Errorf("page of views after the last has gone:\n%s", got)
	}
}

func TestViewsThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	h := dashboard(t, newBackend(t, state.Options{}))
	post(t, h, "/ops/views", url.Values{"name": {"one"}})
	post(t, h, "/ops/views", url.Values{"name": {"two"}})
	tests := map[string]struct {
		target string
		form   url.Values
		status int
		want   string
	}{
		"without a name":  {"/ops/views", url.Values{"q": {"x"}}, 400, "The name of a view must have 1 to 100 characters."},
		"wrong query":     {"/ops/views", url.Values{"name": {"x"}, "q": {"("}}, 400, "Cannot save the view: q is invalid"},
		"system's name":   {"/ops/views", url.Values{"name": {"STUCK"}}, 400, "is built in"},
		"too much":        {"/ops/views", url.Values{"name": {strings.Repeat("x", 1<<17)}}, 400, "The name of a view must"},
		"name is taken":   {"/ops/views/1", url.Values{"name": {"Two"}}, 400, "A view named &#34;two&#34; already exists."},
		"rename unknown":  {"/ops/views/9", url.Values{"name": {"x"}}, 404, "This view no longer exists."},
		"delete unknown":  {"/ops/views/9/delete", nil, 404, "This view no longer exists."},
		"delete no id":    {"/ops/views/a%2Fb/delete", nil, 404, "This view no longer exists."},
		"foreign markup ": {"/ops/views", url.Values{"name": {"<b>"}, "q": {"<b>"}}, 303, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, _, page := post(t, h, tt.target, tt.form)
			if status != tt.status || !strings.Contains(page, tt.want) {
				t.Errorf("answer = %d, want %d with %q:\n%s", status, tt.status, tt.want, page)
			}
		})
	}
	if w := visit(t, h, "/ops/views/9"); w.Code != http.StatusNotFound {
		t.Errorf("question about an unknown view = %d, want 404", w.Code)
	}
	w := request(t, h, http.MethodPost, "/ops/views", "name=x", "Content-Type", "application/x-www-form-urlencoded",
		"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example")
	if w.Code != http.StatusForbidden {
		t.Errorf("a foreign page saves a view: %d, want 403", w.Code)
	}
}

// slow is a backend that counts nothing before it is let.
type slow struct {
	*backend
	let  chan struct{}
	asks chan string
}

func (s *slow) Count(ctx context.Context, q query.Query) (history.Count, error) {
	if q.String() == "" {
		return history.Count{N: 30, Exact: true}, nil
	}
	select {
	case s.asks <- q.String():
	default:
	}
	select {
	case <-s.let:
	case <-ctx.Done():
		return history.Count{}, ctx.Err()
	}
	return s.backend.Count(ctx, q)
}

func TestNumbersBesideViews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &slow{backend: newBackend(t, state.Options{}), let: make(chan struct{}), asks: make(chan string, 100)}
		h, err := web.New(web.Options{Backend: b})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.Run(ctx) }()
		synctest.Wait()
		counts := func() []string {
			page := visit(t, h, "/tasks").Body.String()
			_, page, _ = strings.Cut(page, `<nav id="views"`)
			page, _, _ = strings.Cut(page, "</nav>")
			return find(`<span class="count">([^<]*)</span>`, page)
		}
		start := time.Now()
		if got := counts(); len(got) != 0 {
			t.Errorf("numbers before anything is counted = %v, want none", got)
		}
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("the page waited %v for numbers", took)
		}
		close(b.let)
		synctest.Wait()
		if got := len(counts()); got != 6 {
			t.Errorf("%d numbers, want 6", got)
		}
		drain := func() (n int) {
			for {
				select {
				case <-b.asks:
					n++
				default:
					return n
				}
			}
		}
		drain()
		counts()
		<-time.After(59 * time.Second)
		counts()
		synctest.Wait()
		if n := drain(); n != 0 {
			t.Errorf("%d queries are counted again within a minute", n)
		}
		<-time.After(2 * time.Second)
		counts()
		synctest.Wait()
		if n := drain(); n != 6 {
			t.Errorf("%d queries are counted again after a minute, want 6", n)
		}
		<-time.After(time.Minute) // they were used since they were counted
		synctest.Wait()
		drain()
		<-time.After(time.Hour)
		synctest.Wait()
		if n := drain(); n != 0 {
			t.Errorf("%d queries are counted that nobody looks at", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// away is a backend whose history cannot be read.
type unavailableBackend struct{ *backend }

var errAway = errors.New("disk gone")

func (unavailableBackend) Tasks(context.Context, history.TaskRequest) (history.TaskPage, error) {
	return history.TaskPage{}, errAway
}

func (unavailableBackend) Task(context.Context, string) (state.Task, error) {
	return state.Task{}, errAway
}

func TestHistoryThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h, err := web.New(web.Options{Backend: unavailableBackend{newBackend(t, state.Options{})}, Prefix: "/ops"})
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/ops/tasks", "/ops/tasks?q=(", "/ops/tasks/task-01"} {
		w := visit(t, h, target)
		page := w.Body.String()
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(page, "The history is unavailable") || strings.Contains(page, "disk gone") {
			t.Errorf("%s = %d, want a page of status 503 that hides the cause:\n%s", target, w.Code, page)
		}
	}
	for _, target := range []string{"/ops/api/v1/tasks", "/ops/api/v1/tasks/task-01"} {
		if got := visit(t, h, target).Code; got != http.StatusServiceUnavailable {
			t.Errorf("%s = %d, want 503", target, got)
		}
	}
	if got := visit(t, h, "/ops/tasks/nope").Code; got != http.StatusServiceUnavailable {
		t.Errorf("unknown task = %d, want 503: nobody knows whether it is kept", got)
	}
}
