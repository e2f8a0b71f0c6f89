package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/web/api"
)

func ids(list map[string]any) []string {
	found := []string{}
	for _, item := range list["items"].([]any) {
		found = append(found, item.(map[string]any)["id"].(string))
	}
	return found
}

func TestProblems(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	long := strings.Repeat("é", 5000)
	tests := map[string]struct {
		target    string
		status    int
		parameter string
		detail    string
	}{
		"limit":             {"/tasks?limit=501", 400, "limit", "query.limit: expected number <= 500"},
		"state":             {"/tasks?state=a%20b", 400, "state", "state must be"},
		"cursor":            {"/tasks?cursor=x", 400, "cursor", "cursor must be"},
		"query":             {"/tasks?q=state:failure+nane:x", 400, "q", "q is invalid: there is no field nane"},
		"order":             {"/tasks?sort=args", 400, "sort", "sort must be one of"},
		"columns":           {"/tasks?cols=nope", 400, "cols", `cols has no column "nope"`},
		"export limit":      {"/tasks/export?limit=5", 400, "limit", "query.limit: unknown query parameter"},
		"export format":     {"/tasks/export?format=xls", 400, "format", `expected value to be one of "csv, jsonl"`},
		"export query":      {"/tasks/export?q=(", 400, "q", "q is invalid"},
		"suggest place":     {"/suggest?q=a&at=2", 400, "at", "at must be a position in q"},
		"suggest no place":  {"/suggest?q=a&at=x", 400, "at", "query.at: invalid integer"},
		"suggest long":      {"/suggest?q=" + strings.Repeat("x", 9000), 400, "q", "query.q: expected length <= 2048"},
		"unknown parameter": {"/tasks?stat=SUCCESS", 400, "stat", "query.stat: unknown query parameter"},
		"escape":            {"/tasks?q=a&name=%zz", 400, "", `query: invalid URL escape "%zz"`},
		"semicolon":         {"/tasks?q=a;b", 400, "", "query: invalid semicolon"},
		"twice":             {"/tasks?q=a&q=b", 400, "q", "query.q: may be given only once"},
		"long parameter":    {"/tasks?" + long + "=1", 400, strings.Repeat("é", 97) + "…", "unknown query parameter"},
		"task parameter":    {"/tasks/" + taskID + "?limit=1", 400, "limit", "query.limit: unknown query parameter"},
		"event parameter":   {"/tasks/" + taskID + "/events?a=1", 400, "a", "query.a: unknown query parameter"},
		"workers parameter": {"/workers?z=1&b=1", 400, "b", "query.b: unknown query parameter; query.z: unknown query parameter"},
		"worker parameter":  {"/workers/celery@w1?z=1", 400, "z", "query.z: unknown query parameter"},
		"overview":          {"/overview?z=1", 400, "z", "query.z: unknown query parameter"},
		"task":              {"/tasks/none", 404, "", `Task "none" not found`},
		"long task":         {"/tasks/" + url.PathEscape(long), 404, "", strings.Repeat("é", 100) + `…" not found`},
		"events":            {"/tasks/none/events", 404, "", `Task "none" not found`},
		"worker":            {"/workers/nothing-like-it", 404, "", `No worker is named "nothing-like-it".`},
		"worker misspelt":   {"/workers/celary@W1", 404, "", `the nearest is "celery@w1"`},
		"worker's host":     {"/workers/w1", 404, "", `the nearest is "celery@w1"`},
		"long worker":       {"/workers/" + url.PathEscape(long), 404, "", `…".`},
		"command":           {"/commands/x", 404, "", "openapi.json"},
		"resource":          {"/nothing", 404, "", "openapi.json"},
		"root":              {"/", 404, "", "openapi.json"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := get(t, h, tt.target)
			got := decode(t, w.Body.String())
			if w.Code != tt.status || got["title"] != http.StatusText(tt.status) || got["type"] != "about:blank" {
				t.Errorf("problem = %d %v, want status %d", w.Code, got, tt.status)
			}
			if detail := got["detail"].(string); !strings.Contains(detail, tt.detail) {
				t.Errorf("detail = %q, want it to contain %q", detail, tt.detail)
			}
			if tt.parameter == "" {
				return
			}
			if got["parameter"] != tt.parameter {
				t.Errorf("parameter = %q, want %q", got["parameter"], tt.parameter)
			}
			location := got["errors"].([]any)[0].(map[string]any)["location"]
			if want := "query." + tt.parameter; location != want {
				t.Errorf("location = %q, want %q", location, want)
			}
		})
	}
}

func TestProblemPointsAtTheWrongWord(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for target, want := range map[string][3]any{
		"/tasks?q=state:failure+nane:x":        {json.Number("14"), json.Number("4"), "name"},
		"/tasks/export?q=caf%C3%A9+stat:retry": {json.Number("6"), json.Number("4"), "state"},
		"/tasks?q=zzzzzzzz:x":                  {json.Number("0"), json.Number("8"), nil},
		"/tasks?limit=0":                       {nil, nil, nil},
	} {
		got := decode(t, get(t, h, target).Body.String())
		if got := [3]any{got["offset"], got["length"], got["nearest"]}; got != want {
			t.Errorf("%s: offset, length, nearest = %v, want %v", target, got, want)
		}
	}
}

func TestMethodsAreReadOnly(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch, "BREW"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "/tasks/"+taskID, nil))
		check(t, w)
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s = %d, Allow %q, want 405 and GET, HEAD", method, w.Code, w.Header().Get("Allow"))
		}
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for accept, want := range map[string]int{
		"":                                 200,
		"*/*":                              200,
		"application/*;q=0.1":              200,
		"text/html, application/json;q=.5": 200,
		"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8": 200,
		"application/json; charset=utf-8":                                 200,
		"text/html":                                                       406,
		"application/json;q=0":                                            406,
		"json":                                                            406,
		"/;;,":                                                            406,
	} {
		r := httptest.NewRequest(http.MethodGet, "/workers", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		check(t, w)
		if got := w.Code; got != want {
			t.Errorf("Accept %q = %d, want %d", accept, got, want)
		}
	}
}
