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
	h := api.New(api.Options{Backend: newBackend()})
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

func TestEntityTags(t *testing.T) {
	t.Parallel()
	b := newBackend()
	h := api.New(api.Options{Backend: b})
	for _, target := range []string{"/tasks?state=SUCCESS", "/tasks/" + taskID, "/tasks/" + taskID + "/events", "/workers", "/workers/celery@w1"} {
		tag := get(t, h, target).Header().Get("ETag")
		again := func() int {
			r := httptest.NewRequest(http.MethodGet, target, nil)
			r.Header.Set("If-None-Match", `"other", W/`+tag)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			check(t, w)
			if w.Code == http.StatusNotModified && w.Body.Len() > 0 {
				t.Errorf("GET %s answers 304 with a body", target)
			}
			return w.Code
		}
		if got, want := again(), http.StatusNotModified; got != want {
			t.Errorf("GET %s with its ETag %s = %d, want %d", target, tag, got, want)
		}
		b.apply(received("celery@w1", 11, "new "+target, "n", "", ""))
		if got, want := again(), http.StatusOK; got != want {
			t.Errorf("GET %s after a change = %d, want %d", target, got, want)
		}
	}
	other := api.New(api.Options{Backend: b})
	if a, b := get(t, h, "/workers").Header().Get("ETag"), get(t, other, "/workers").Header().Get("ETag"); a == b {
		t.Errorf("two runs share the ETag %s", a)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(api.New(api.Options{Backend: newBackend()}))
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
	h := api.New(api.Options{Backend: &backend{}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	w := get(t, h, "/tasks")
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
