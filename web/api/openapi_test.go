package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/auth"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	o := options(t, newBackend(t))
	o.Version, o.Prefix = "1.2.3", "/ops/celery/"
	h := newAPI(o)
	var got bytes.Buffer
	if err := json.Indent(&got, get(t, h, "/openapi.json").Body.Bytes(), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("openapi.json changed; run with -update if that is right (-want +got):\n%s", diff)
	}
}

func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	mux := api.New(options(t, newBackend(t)))
	h := as(auth.Grant{Audience: auth.Everything}, mux)
	last := regexp.MustCompile(`(\*|\{[^}]*\})$`) // the router takes more of a path for some parameters
	documented := map[string]bool{}
	for path := range operations(t, h) {
		documented[last.ReplaceAllString(path, "{}")] = true
	}
	routes := map[string]bool{}
	err := chi.Walk(mux.(chi.Routes), func(_, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes[last.ReplaceAllString(route, "{}")] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(routes))); diff != "" {
		t.Errorf("routes (-documented +served):\n%s", diff)
	}
}

func TestOtherMethodsAreRefused(t *testing.T) {
	t.Parallel()
	h := newAPI(options(t, newBackend(t)))
	for path, methods := range operations(t, h) {
		var allowed []string
		for _, m := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
			_, ok := methods[strings.ToLower(strings.Replace(m, "HEAD", "GET", 1))]
			if ok {
				allowed = append(allowed, m)
			}
		}
		for _, m := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"} {
			if slices.Contains(allowed, m) {
				continue
			}
			target := strings.NewReplacer("{id}", "17", "{name}", "x").Replace(path)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(m, target, nil))
			if got, want := w.Header().Get("Allow"), strings.Join(allowed, ", "); w.Code != http.StatusMethodNotAllowed || got != want {
				t.Errorf("%s %s = %d, Allow: %s, want 405, Allow: %s", m, target, w.Code, got, want)
			}
		}
	}
}

// operations are those of the document, by path and method in lower case.
func operations(t *testing.T, h http.Handler) map[string]map[string]any {
	t.Helper()
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(get(t, h, "/openapi.json").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	return document.Paths
}
