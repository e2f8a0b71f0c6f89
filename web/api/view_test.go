package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/web/api"
)

func send(t *testing.T, h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusNoContent {
		check(t, w)
	}
	return w
}

func TestViewsAreKeptChangedAndDeleted(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t), Prefix: "/ops"})
	list := func() string { return get(t, h, "/views").Body.String() }
	created := send(t, h, http.MethodPost, "/views", `{"name":" Late  ones ","query":"run:>2s","sort":"-run","cols":"id,run"}`)
	saved := decode(t, created.Body.String())
	id := saved["id"].(string)
	if got, want := created.Header().Get("Location"), "/ops/api/v1/views/"+id; created.Code != http.StatusCreated || got != want {
		t.Errorf("a new view = %d, Location: %s, want 201, Location: %s", created.Code, got, want)
	}
	if diff := cmp.Diff(saved, decode(t, get(t, h, "/views/"+id).Body.String())); diff != "" {
		t.Errorf("the view at its Location (-saved +got):\n%s", diff)
	}
	want := map[string]any{"id": id, "name": "Late ones", "query": "run:>2s", "sort": "-run", "cols": "id,run"}
	if diff := cmp.Diff(want, saved); diff != "" {
		t.Errorf("saved view (-want +got):\n%s", diff)
	}
	replaced := send(t, h, http.MethodPost, "/views", `{"name":"late ONES","query":"run:>3s"}`)
	if location := replaced.Header().Get("Location"); replaced.Code != http.StatusOK || location != "" {
		t.Errorf("a view of the same name = %d, Location: %s, want 200 without", replaced.Code, location)
	}
	again := decode(t, replaced.Body.String())
	if again["id"] != id || strings.Count(list(), `"id"`) != 1 {
		t.Errorf("a view of the same name is beside the first: %s", list())
	}
	changed := send(t, h, http.MethodPut, "/views/"+id, `{"name":"Slow","query":"run:>4s"}`)
	if changed.Code != http.StatusOK || !strings.Contains(list(), `"run:>4s"`) || !strings.Contains(list(), `"Slow"`) {
		t.Errorf("change = %d, then %s", changed.Code, list())
	}
	if got := send(t, h, http.MethodDelete, "/views/"+id, "").Code; got != http.StatusNoContent {
		t.Errorf("delete = %d, want 204", got)
	}
	if got := list(); strings.Contains(got, "Slow") {
		t.Errorf("views after the delete: %s", got)
	}
}

func TestViewsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	send(t, h, http.MethodPost, "/views", `{"name":"one"}`)
	send(t, h, http.MethodPost, "/views", `{"name":"two"}`)
	tests := map[string]struct {
		method, target, body string
		status               int
		detail               string
	}{
		"no name":         {"POST", "/views", `{"query":"x"}`, 400, "expected required property name to be present"},
		"long name":       {"POST", "/views", `{"name":"` + strings.Repeat("é", 101) + `"}`, 400, "expected length <= 100"},
		"control in name": {"POST", "/views", `{"name":"a\u0000b"}`, 400, "1 to 100 characters"},
		"system's name":   {"POST", "/views", `{"name":"stuck"}`, 400, "is built in"},
		"wrong query":     {"POST", "/views", `{"name":"x","query":"nane:y"}`, 400, "there is no field nane"},
		"wrong order":     {"POST", "/views", `{"name":"x","sort":"args"}`, 400, "sort must be one of"},
		"wrong columns":   {"POST", "/views", `{"name":"x","cols":"nope"}`, 400, "cols has no column"},
		"other's name":    {"PUT", "/views/1", `{"name":"TWO"}`, 400, `A view named "two" already exists`},
		"unknown":         {"PUT", "/views/99", `{"name":"x"}`, 404, "no view 99"},
		"gone":            {"DELETE", "/views/99", "", 404, "no view 99"},
		"unknown field":   {"POST", "/views", `{"name":"x","colour":"red"}`, 400, "body.colour: unexpected property"},
		"other case":      {"POST", "/views", `{"Name":"x"}`, 400, `"Name" is not a known property`},
		"field twice":     {"PUT", "/views/1", `{"name":"x","name":"y"}`, 400, `"name" is given twice`},
		"mistyped":        {"POST", "/views", `{"name":7}`, 400, "body.name: expected string"},
		"no JSON":         {"POST", "/views", `{`, 400, ""},
		"no object":       {"POST", "/views", `[]`, 400, ""},
		"nothing":         {"POST", "/views", ``, 400, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := send(t, h, tt.method, tt.target, tt.body)
			got := decode(t, w.Body.String())
			if detail, _ := got["detail"].(string); w.Code != tt.status || !strings.Contains(detail, tt.detail) {
				t.Errorf("problem = %d %v, want %d with %q", w.Code, got, tt.status, tt.detail)
			}
		})
	}
}

func TestViewsAreBounded(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	for i := range 100 {
		if got := send(t, h, http.MethodPost, "/views", fmt.Sprintf(`{"name":"view %d"}`, i)).Code; got != http.StatusCreated {
			t.Fatalf("view %d = %d, want 201", i, got)
		}
	}
	if got := send(t, h, http.MethodPost, "/views", `{"name":"one more"}`).Code; got != http.StatusBadRequest {
		t.Errorf("view 101 = %d, want 400", got)
	}
	if got := send(t, h, http.MethodPost, "/views", `{"name":"view 7","query":"x"}`).Code; got != http.StatusOK {
		t.Errorf("replacing a view = %d, want 200", got)
	}
}

func TestSuggestions(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	tests := map[string]struct {
		target, text, query string
		at                  string
	}{
		"field":             {"/suggest?q=sta", "state:", "state:", "6"},
		"value":             {"/suggest?q=state:fa", "failure", "state:failure", "13"},
		"name":              {"/suggest?q=name:PAY", "shop.pay", "name:shop.pay", "13"},
		"worker":            {"/suggest?q=worker:w1", "celery@w1", "worker:celery@w1", "16"},
		"in the middle":     {"/suggest?q=caf%C3%A9+sta+x&at=9", "state:", "café state: x", "12"},
		"nothing yet":       {"/suggest", "state:", "state:", "6"},
		"cursor at the end": {"/suggest?q=x+queue:cel&at=11", "celery", "x queue:celery", "14"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := decode(t, get(t, h, tt.target).Body.String())["items"].([]any)
			if len(items) == 0 {
				t.Fatal("no suggestions")
			}
			got := items[0].(map[string]any)
			if got["text"] != tt.text || got["query"] != tt.query || fmt.Sprint(got["at"]) != tt.at {
				t.Errorf("first suggestion = %v, want %+v", got, tt)
			}
		})
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	h := newAPI(api.Options{Backend: newBackend(t)})
	if got := send(t, h, http.MethodPost, "/views", `{"name":"Slow payments","query":"run:>2s"}`).Code; got != http.StatusCreated {
		t.Fatalf("save a view = %d, want 201", got)
	}
	for q, want := range map[string]string{
		"W1":             "worker celery@w1 /workers/celery@w1",
		"cel":            "worker celery@w1 /workers/celery@w1",
		"pay":            "name shop.pay /tasks?q=name%3Ashop.pay",
		"payments slow":  "view Slow payments /tasks?q=run%3A%3E2s",
		taskID:           "task shop.add " + taskID + " /tasks/" + taskID,
		"no such":        "",
		"x*OR(":          "",
		" ":              "",
		taskID[:4] + "x": "",
	} {
		var got string
		items := decode(t, get(t, h, "/search?"+url.Values{"q": {q}}.Encode()).Body.String())["items"].([]any)
		if len(items) > 0 {
			first := items[0].(map[string]any)
			got = fmt.Sprint(first["kind"], " ", first["text"], " ", first["path"])
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", q, got, want)
		}
	}
	for _, target := range []string{"/search", "/search?q=", "/search?q=" + strings.Repeat("x", 201)} {
		if got := get(t, h, target).Code; got != http.StatusBadRequest {
			t.Errorf("GET %.20s = %d, want 400", target, got)
		}
	}
}
