package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/web/api"
)

func TestNamesSurviveEveryMount(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	router := chi.NewRouter()
	router.Mount("/ops/api/v1", h)
	hosts := map[string]struct {
		handler http.Handler
		base    string
	}{
		"alone":        {h, ""},
		"stripped":     {http.StripPrefix("/api/v1", h), "/api/v1"},
		"chi":          {router, "/ops/api/v1"},
		"stripped chi": {http.StripPrefix("/x", router), "/x/ops/api/v1"},
	}
	for name, host := range hosts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for target, want := range map[string]string{
				"/tasks/" + url.PathEscape(oddID):             `"id":"odd/../id?é%2F \"<x>&"`,
				"/tasks/" + url.PathEscape(oddID) + "/events": `"type":"task-received"`,
				"/workers/" + url.PathEscape(oddName):         `"name":"celery@höst/1%2F#?"`,
				"/workers/celery@h%C3%B6st/1%252F%23%3F":      `"name":"celery@höst/1%2F#?"`,
				"/workers/celery%40w1":                        `"name":"celery@w1"`,
				"/workers/celery@w1":                          `"name":"celery@w1"`,
			} {
				w := get(t, host.handler, host.base+target)
				if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
					t.Errorf("GET %s = %d %s, want %s", target, w.Code, w.Body, want)
				}
			}
		})
	}
}

// TestNoAnswerIsKept: an entity tag would promise that a client may ask whether an answer has changed. They change with every
// event, and compression makes others of them.
func TestNoAnswerIsKept(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for _, target := range []string{"/tasks", "/tasks/" + taskID, "/tasks/" + taskID + "/events", "/workers", "/workers/celery@w1"} {
		if tag := get(t, h, target).Header().Get("ETag"); tag != "" {
			t.Errorf("GET %s has the ETag %s", target, tag)
		}
	}
}

func TestClientsThatTakeProblems(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for accept, want := range map[string]int{
		"application/problem+json": 200, "text/html;q=0, application/problem+json;q=0.5": 200, "application/*": 200, "text/html": 406,
	} {
		r := httptest.NewRequest(http.MethodGet, "/tasks", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if check(t, w); w.Code != want {
			t.Errorf("Accept: %s answers %d, want %d", accept, w.Code, want)
		}
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newAPI(api.Options{Backend: newBackend(t)}))
	defer server.Close()
	for target, want := range map[string]int{"/tasks": 200, "/workers/celery@w1": 200, "/tasks/none": 404} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodHead, server.URL+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.StatusCode; got != want {
			t.Errorf("HEAD %s = %d, want %d", target, got, want)
		}
	}
}

func TestPanicShowsNothing(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	h := newAPI(api.Options{Backend: &backend{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w := get(t, h, "/workers")
	if got, want := w.Code, http.StatusInternalServerError; got != want {
		t.Fatalf("status = %d, want %d", got, want)
	}
	if body := w.Body.String(); strings.Contains(body, "nil pointer") || strings.Contains(body, ".go") {
		t.Errorf("answer shows internals: %s", body)
	}
	if !strings.Contains(log.String(), "nil pointer") || !strings.Contains(log.String(), "stack=") {
		t.Errorf("log lacks the panic: %s", log.String())
	}
}
