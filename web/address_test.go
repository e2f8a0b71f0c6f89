package web_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/web"
)

func TestSlashesAtTheEndLeadOn(t *testing.T) {
	t.Parallel()
	root, below := newWeb(t, web.Options{}), newWeb(t, web.Options{Prefix: "/ops"})
	for _, tt := range []struct {
		h                http.Handler
		method, target   string
		status           int
		location, answer string
	}{
		{root, "GET", "/tasks/", 308, "/tasks", ""},
		{root, "GET", "/api/v1/tasks/?limit=1&q=a%2Fb", 308, "/api/v1/tasks?limit=1&q=a%2Fb", ""},
		{root, "HEAD", "/workers///", 308, "/workers", ""},
		{root, "POST", "/api/v1/views/", 308, "/api/v1/views", ""},
		{root, "GET", "/tasks/a%2Fb%3F/", 308, "/tasks/a%2Fb%3F", ""},
		{root, "GET", "/api/v1/tasks/%2F/", 308, "/api/v1/tasks/%2F", ""},
		{root, "GET", "/api/v1/tasks/x%2F", 404, "", `\"x/\"`},
		{root, "GET", "//evil.example/", 404, "", ""},
		{root, "GET", "/\\evil.example/", 308, "/%5Cevil.example", ""},
		{below, "GET", "/ops/tasks/", 308, "/ops/tasks", ""},
		{below, "GET", "/ops/api/v1/workers/", 308, "/ops/api/v1/workers", ""},
		{below, "GET", "/workers/", 308, "/ops/workers", ""}, // from a proxy that takes the prefix off
		{below, "GET", "/ops//evil.example/", 404, "", ""},
	} {
		w := request(t, tt.h, tt.method, tt.target, "")
		if got := w.Header().Get("Location"); w.Code != tt.status || got != tt.location || !strings.Contains(w.Body.String(), tt.answer) {
			t.Errorf("%s %s = %d, Location: %s, %.200s, want %d, Location: %s", tt.method, tt.target, w.Code, got, w.Body, tt.status, tt.location)
		}
	}
}

func TestWhatIsRefusedUnderTheAPIIsAProblem(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops", Hosts: []string{"localhost"}})
	for status, header := range map[int][]string{
		http.StatusMisdirectedRequest: {"Host", "evil.example"},
		http.StatusForbidden:          {"Host", "localhost", "Sec-Fetch-Site", "cross-site"},
	} {
		for target, want := range map[string]string{
			"/ops/api/v1/views": "application/problem+json", "/api/v1/views": "application/problem+json", "/ops/views": "text/plain; charset=utf-8",
		} {
			w := request(t, h, http.MethodPost, target, "{}", header...)
			if got := w.Header().Get("Content-Type"); w.Code != status || got != want {
				t.Errorf("POST %s = %d of type %s, want %d of type %s", target, w.Code, got, status, want)
			}
			var problem struct {
				Type   string `json:"type"`
				Status int    `json:"status"`
			}
			if strings.Contains(want, "json") && (json.Unmarshal(w.Body.Bytes(), &problem) != nil || problem.Type != "about:blank" || problem.Status != status) {
				t.Errorf("POST %s is answered with %s, want a problem", target, w.Body)
			}
		}
	}
}

func TestAPageSaysWhichMethodsThereAre(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops"})
	for _, tt := range []struct{ method, target, allow string }{
		{"POST", "/ops/tasks", "GET, HEAD"},
		{"PUT", "/ops/views", "GET, HEAD, POST"},
		{"DELETE", "/ops/theme", "POST"},
		{"GET", "/ops/failures/0dd7dc58725190cd/resolve", "POST"},
		{"POST", "/ops/workers/a%2Fb", "GET, HEAD"},
	} {
		w := request(t, h, tt.method, tt.target, "")
		if got := w.Header().Get("Allow"); w.Code != http.StatusMethodNotAllowed || got != tt.allow {
			t.Errorf("%s %s = %d, Allow: %s, want 405, Allow: %s", tt.method, tt.target, w.Code, got, tt.allow)
		}
		if !strings.Contains(w.Body.String(), "</html>") || !strings.Contains(w.Body.String(), tt.allow) {
			t.Errorf("%s %s shows %.200q, want a page that says what is possible", tt.method, tt.target, w.Body)
		}
	}
}
