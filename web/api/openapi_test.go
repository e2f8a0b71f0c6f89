package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/web/api"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	o := options(t, newBackend())
	o.Version, o.Prefix = "1.2.3", "/ops/celery/"
	h := api.New(o)
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
	h := api.New(options(t, newBackend()))
	paths := decode(t, get(t, h, "/openapi.json").Body.String())["paths"].(map[string]any)
	documented := map[string]bool{}
	for path := range paths {
		// A parameter at the end takes the rest of the path.
		documented[regexp.MustCompile(`\{[^}]*\}$`).ReplaceAllString(path, "*")] = true
	}
	routes := map[string]bool{}
	err := chi.Walk(h.(chi.Routes), func(_, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		routes[route] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(routes))); diff != "" {
		t.Errorf("routes (-documented +served):\n%s", diff)
	}
}

func TestAnswersMatchTheDocument(t *testing.T) {
	t.Parallel()
	b := newBackend()
	b.health.Rejected = map[string]uint64{"x": 1}
	h := api.New(api.Options{Backend: b})
	doc := document(decode(t, get(t, h, "/openapi.json").Body.String()))
	for target, path := range map[string]string{
		"/tasks":                       "/tasks",
		"/tasks?limit=1":               "/tasks",
		"/tasks?limit=0":               "/tasks",
		"/series?from=-24h":            "/series",
		"/tasks/" + taskID:             "/tasks/{id}",
		"/tasks/" + failedID:           "/tasks/{id}",
		"/tasks/none":                  "/tasks/{id}",
		"/tasks/" + taskID + "/events": "/tasks/{id}/events",
		"/tasks/none/events":           "/tasks/{id}/events",
		"/failures":                    "/failures",
		"/failures?show=x":             "/failures",
		"/failures/" + failed():        "/failures/{id}",
		"/failures/none":               "/failures/{id}",
		"/workers":                     "/workers",
		"/workers?x=1":                 "/workers",
		"/workers/celery@w1":           "/workers/{name}",
		"/workers/none":                "/workers/{name}",
		"/overview":                    "/overview",
		"/overview?x=1":                "/overview",
		"/openapi.json":                "/openapi.json",
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			w := get(t, h, target)
			schema, ok := doc.find("paths", path, "get", "responses", strconv.Itoa(w.Code), "content",
				w.Header().Get("Content-Type"), "schema").(map[string]any)
			if !ok {
				t.Fatalf("%s has no schema for %d %s", path, w.Code, w.Header().Get("Content-Type"))
			}
			for _, wrong := range doc.validate(schema, any(decode(t, w.Body.String())), "") {
				t.Error(wrong)
			}
		})
	}
}

// document is a decoded OpenAPI document. It checks values against those parts of JSON Schema
// that the document uses, and reports any other part as wrong.
type document map[string]any

func (d document) find(keys ...string) any {
	var v any = map[string]any(d)
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

// validate returns what is wrong with v at a path.
func (d document) validate(schema map[string]any, v any, at string) (wrong []string) {
	fail := func(format string, args ...any) { wrong = append(wrong, at+": "+fmt.Sprintf(format, args...)) }
	for keyword, rule := range schema {
		switch keyword {
		case "$ref":
			keys := strings.Split(strings.TrimPrefix(rule.(string), "#/"), "/")
			wrong = append(wrong, d.validate(d.find(keys...).(map[string]any), v, at)...)
		case "type":
			types, list := rule.([]any)
			if !list {
				types = []any{rule}
			}
			is := typeOf(v)
			whole := is == "integer" && slices.Contains(types, any("number"))
			if !whole && !slices.Contains(types, any(is)) {
				fail("is %s, want %v", is, types)
			}
		case "anyOf":
			fits := func(s any) bool { return len(d.validate(s.(map[string]any), v, at)) == 0 }
			if !slices.ContainsFunc(rule.([]any), fits) {
				fail("%v fits none of %v", v, rule)
			}
		case "properties", "additionalProperties", "required":
			if m, ok := v.(map[string]any); ok {
				wrong = append(wrong, d.object(schema, keyword, m, at)...)
			}
		case "items":
			if list, ok := v.([]any); ok {
				for i, item := range list {
					wrong = append(wrong, d.validate(rule.(map[string]any), item, fmt.Sprintf("%s[%d]", at, i))...)
				}
			}
		case "minItems", "maxItems":
			if list, ok := v.([]any); ok && json.Number(strconv.Itoa(len(list))) != rule {
				fail("has %d items, %s %v", len(list), keyword, rule)
			}
		case "enum":
			if !slices.Contains(rule.([]any), v) {
				fail("is %v, want one of %v", v, rule)
			}
		case "pattern":
			if s, ok := v.(string); ok && !regexp.MustCompile(rule.(string)).MatchString(s) {
				fail("%q does not match %v", s, rule)
			}
		case "format":
			if s, ok := v.(string); ok && rule == "date-time" && !rfc3339.MatchString(s) {
				fail("%q is not RFC 3339 in UTC with six decimals", s)
			}
		case "minimum":
			if n, ok := v.(json.Number); ok && strings.HasPrefix(n.String(), "-") {
				fail("is %v, below %v", n, rule)
			}
		case "description", "examples":
		default:
			fail("keyword %s is not checked", keyword)
		}
	}
	return wrong
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

func (d document) object(schema map[string]any, keyword string, m map[string]any, at string) (wrong []string) {
	properties, _ := schema["properties"].(map[string]any)
	switch keyword {
	case "properties":
		for name, s := range properties {
			if v, ok := m[name]; ok {
				wrong = append(wrong, d.validate(s.(map[string]any), v, at+"."+name)...)
			}
		}
	case "required":
		for _, name := range schema["required"].([]any) {
			if _, ok := m[name.(string)]; !ok {
				wrong = append(wrong, fmt.Sprintf("%s: lacks %v", at, name))
			}
		}
	case "additionalProperties":
		rest, more := schema["additionalProperties"].(map[string]any)
		for name, v := range m {
			switch {
			case properties[name] != nil:
			case more:
				wrong = append(wrong, d.validate(rest, v, at+"."+name)...)
			default: // the document allows it, for fields to come; today there must be none
				wrong = append(wrong, fmt.Sprintf("%s: has %s, which is not described", at, name))
			}
		}
	}
	return wrong
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "integer"
	case []any:
		return "array"
	default:
		return "object"
	}
}
