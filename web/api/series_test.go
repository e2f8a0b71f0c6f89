package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/web/api"
)

func TestSeries(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for _, target := range []string{"/series", "/series?from=-7d&group=name", "/series?q=state:failure", "/series?q=args:~x&from=-24h&to=-1h"} {
		w := get(t, h, target)
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d: %s", target, w.Code, w.Body)
			continue
		}
		lines := decode(t, w.Body.String())["lines"].([]any)
		points := lines[0].(map[string]any)["points"].([]any)
		if len(points) < 60 || len(points) > 182 {
			t.Errorf("%s: %d points, want 60 to 182", target, len(points))
		}
	}
}

func TestSeriesRefuses(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for target, want := range map[string]string{
		"/series?limit=1":                       "limit",
		"/series?group=age":                     "group",
		"/series?from=yesterday":                "from",
		"/series?to=soon":                       "to",
		"/series?from=-1h&to=-2h":               "from",
		"/series?from=0001-01-01T00:00:00Z":     "from",
		"/series?q=nofield:x":                   "q",
		"/series?q=" + strings.Repeat("x", 9e3): "q",
		"/series?from=-1h&from=-2h":             "from",
	} {
		w := get(t, h, target)
		got := decode(t, w.Body.String())["parameter"]
		if w.Code != http.StatusBadRequest || got != want {
			t.Errorf("%.60s: status %d, parameter %v, want 400, %v", target, w.Code, got, want)
		}
	}
}
