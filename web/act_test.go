package web_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/web"
)

// changing are the routes of h by which something can be changed.
func changing(t *testing.T, h *web.Handler) []string {
	t.Helper()
	var list []string
	seen := 0
	err := chi.Walk(h.Routed(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		seen++
		if method != http.MethodGet && method != http.MethodHead {
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

func TestReadOnlyHasNoRouteThatChangesAnything(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff([]string{"POST /theme"}, changing(t, newWeb(t, web.Options{ReadOnly: true}))); diff != "" {
		t.Errorf("routes of a read-only dashboard by which something changes (-want +got):\n%s", diff)
	}
	all := changing(t, newWeb(t, web.Options{}))
	for _, want := range []string{"POST /views", "POST /failures/{id}/resolve", "POST /api/v1/views"} {
		if !slices.Contains(all, want) {
			t.Errorf("no route %s where changes are allowed, but %v", want, all)
		}
	}
}
