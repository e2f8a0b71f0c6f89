package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/flower"
)

// changing are the routes of h by which something can be changed.
func changing(t *testing.T, h *web.Handler) []string {
	t.Helper()
	var list []string
	seen := 0
	err := chi.Walk(h.Routed(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		seen++
		if method != http.MethodGet && method != http.MethodHead && method != http.MethodOptions {
			list = append(list, method+" "+route)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 20 {
		t.Fatalf("only %d routes were seen", seen)
	}
	return list
}

// Assistants and DataTables ask by POST, and so does whoever tries the rules of redaction; they change nothing. The routes of Flower's API are there to say that the mode is read-only.
func TestReadOnlyHasNoRouteThatChangesAnything(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{ReadOnly: true, Flower: flower.Settings{Unauthenticated: true}})
	list := slices.DeleteFunc(changing(t, h), func(route string) bool {
		path, ok := strings.CutPrefix(route, "POST ")
		if !ok || !strings.HasPrefix(path, "/api/worker/") && !strings.HasPrefix(path, "/api/task/") {
			return false
		}
		w := request(t, h, http.MethodPost, strings.Replace(path, "*", "celery@a", 1), "")
		return w.Code == http.StatusForbidden && w.Body.String() == "Read only mode is enabled"
	})
	if diff := cmp.Diff([]string{"POST /density", "POST /mcp", "POST /settings/redact", "POST /tasks/datatable", "POST /theme", "POST /time"}, list); diff != "" {
		t.Errorf("routes of a read-only dashboard by which something changes (-want +got):\n%s", diff)
	}
	all := changing(t, newWeb(t, web.Options{}))
	for _, want := range []string{"POST /views", "POST /failures/{id}/resolve", "POST /api/v1/views"} {
		if !slices.Contains(all, want) {
			t.Errorf("no route %s where changes are allowed, but %v", want, all)
		}
	}
}

func TestReadOnlyPagesOfferNoChange(t *testing.T) {
	t.Parallel()
	for _, readOnly := range []bool{true, false} {
		h := newWeb(t, web.Options{ReadOnly: readOnly})
		id := find(`href="/failures/([0-9a-f]{16})"`, visit(t, h, "/failures").Body.String())[0]
		offers := 0
		for _, path := range []string{
			"/", "/tasks", "/tasks/task-01", "/views", "/failures", "/failures/" + id, "/workers", "/workers/celery@a", "/settings",
		} {
			w := visit(t, h, path)
			if w.Code != http.StatusOK {
				t.Fatalf("%s = %d, want 200", path, w.Code)
			}
			for _, action := range find(`<form[^>]* action="([^"]*)"[^>]* method="post"`, w.Body.String()) {
				switch {
				case action == "/theme", action == "/density", action == "/time", action == "/settings/redact":
				case readOnly:
					t.Errorf("%s has a form for %s", path, action)
				default:
					offers++
				}
			}
		}
		if !readOnly && offers == 0 {
			t.Error("no page offers a change where changes are allowed")
		}
	}
}
