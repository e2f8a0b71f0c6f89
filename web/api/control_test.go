package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/web/api"
)

// ordering is an API whose orders are written down, and sent to nobody.
func newCommandsAPI(t *testing.T) http.Handler {
	t.Helper()
	b := newBackend(t)
	now := func() time.Time { return time.UnixMicro(start).UTC() }
	ops, err := command.New(command.Options{Client: controlClient(t, inproc.New(inproc.Options{})), Outbox: b.DB, Tasks: b, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return newAPI(api.Options{
		Backend: b, Commands: ops, Prefix: "/ops", Now: now,
	})
}

func TestMethodsSayWhatTheyTake(t *testing.T) {
	t.Parallel()
	body := decode(t, get(t, newCommandsAPI(t), "/methods").Body.String())
	items, _ := body["items"].([]any)
	found := map[string]string{}
	for _, item := range items {
		m, _ := item.(map[string]any)
		var params []string
		for _, p := range m["params"].([]any) {
			param := p.(map[string]any)
			params = append(params, fmt.Sprintf("%v:%v:%v", param["name"], param["type"], param["required"]))
		}
		found[fmt.Sprint(m["name"])] = strings.Join(params, " ")
	}
	for name, want := range map[string]string{
		"ping": "", "shutdown": "", "cancel_consumer": "queue:text:true", "rate_limit": "task_name:text:true rate_limit:rate:true",
	} {
		if got, ok := found[name]; !ok || got != want {
			t.Errorf("parameters of %s = %q, want %q", name, got, want)
		}
	}
	for _, unsafe := range []string{"election", "hello", "objgraph", "memdump"} {
		if _, ok := found[unsafe]; ok {
			t.Errorf("%s is offered", unsafe)
		}
	}
}

func TestControlRefusesBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	h := newCommandsAPI(t)
	tests := map[string]struct {
		body     string
		status   int
		location string // of the error
		nearest  string
	}{
		"missing argument":  {`{"method":"cancel_consumer","workers":["celery@w1"]}`, 400, "body.arguments.queue", ""},
		"omitted rate":      {`{"method":"rate_limit","arguments":{"task_name":"t"}}`, 400, "body.arguments.rate_limit", ""},
		"mistyped argument": {`{"method":"pool_grow","arguments":{"n":"2"}}`, 400, "body.arguments.n", ""},
		"unknown argument":  {`{"method":"ping","arguments":{"loud":true}}`, 400, "body.arguments.loud", ""},
		"unknown method":    {`{"method":"pool_grw"}`, 400, "body.method", "pool_grow"},
		"unsafe method":     {`{"method":"election"}`, 400, "body.method", ""},
		"unknown worker":    {`{"method":"ping","workers":["celery@w1","celery@w2x"]}`, 404, "body.workers[1]", "celery@w1"},
		"expires at once":   {`{"method":"ping","expires_seconds":0}`, 400, "body.expires_seconds", ""},
		"expires never":     {`{"method":"ping","expires_seconds":1e9}`, 400, "body.expires_seconds", ""},
		"unknown field":     {`{"method":"ping","worker":"celery@w1"}`, 400, "body.worker", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, target := range []string{"/control", "/control?dry_run=true"} {
				w := send(t, h, http.MethodPost, target, tc.body)
				body := decode(t, w.Body.String())
				if w.Code != tc.status {
					t.Fatalf("POST %s = %d %s, want %d", target, w.Code, w.Body, tc.status)
				}
				errs, _ := body["errors"].([]any)
				if len(errs) == 0 || errs[0].(map[string]any)["location"] != tc.location {
					t.Errorf("errors = %v, want one at %s", errs, tc.location)
				}
				if near, _ := body["nearest"].(string); near != tc.nearest && tc.nearest != "" {
					t.Errorf("nearest = %q, want %q", near, tc.nearest)
				}
			}
		})
	}
}

func TestControlIsWrittenDownOncePerKey(t *testing.T) {
	t.Parallel()
	h := newCommandsAPI(t)
	const order = `{"method":"pool_grow","arguments":{"n":2},"workers":["celery@w1"]}`
	dry := send(t, h, http.MethodPost, "/control?dry_run=true", order)
	if body := decode(t, dry.Body.String()); dry.Code != http.StatusOK || body["summary"] == "" {
		t.Errorf("dry run = %d %s, want 200 with a summary", dry.Code, dry.Body)
	}
	var first any
	for i := range 2 {
		w := request(h, http.MethodPost, "/control", order, "Idempotency-Key", "once")
		body := decode(t, w.Body.String())
		if w.Code != http.StatusAccepted || body["replayed"] != (i == 1) {
			t.Fatalf("POST /control = %d %s, want 202, replayed %v", w.Code, w.Body, i == 1)
		}
		if i == 0 {
			first = body["request_id"]
		}
		if diff := cmp.Diff(first, body["request_id"]); diff != "" {
			t.Errorf("order of the same key (-want +got):\n%s", diff)
		}
		if got, want := body["url"], fmt.Sprintf("/ops/outbox/%v", first); got != want {
			t.Errorf("url = %v, want %v", got, want)
		}
		commands, _ := body["commands"].([]any)
		if len(commands) != 1 || commands[0].(map[string]any)["actor"] != "ada" {
			t.Errorf("commands = %v, want one by ada", commands)
		}
	}
	w := request(h, http.MethodPost, "/control", `{"method":"ping"}`, "Idempotency-Key", "once")
	if w.Code != http.StatusUnprocessableEntity {
		t.Errorf("the same key for another order = %d %s, want 422", w.Code, w.Body)
	}
}

func TestInspectSaysWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	h := newCommandsAPI(t)
	w := get(t, h, "/inspect/celery@w1")
	body := decode(t, w.Body.String())
	if w.Code != http.StatusOK || body["name"] != "celery@w1" || body["stats"] != nil || body["active"] != nil || body["at"] != nil {
		t.Errorf("GET /inspect/celery@w1 = %d %s, want 200 with nothing known", w.Code, w.Body)
	}
	w = get(t, h, "/inspect/celery@w1x")
	if body := decode(t, w.Body.String()); w.Code != http.StatusNotFound || body["nearest"] != "celery@w1" {
		t.Errorf("unknown worker = %d %s, want 404 with the nearest", w.Code, w.Body)
	}
	for _, query := range []string{"refresh=maybe", "refresh=true&refresh=true", "fresh=true"} {
		if w := get(t, h, "/inspect/celery@w1?"+query); w.Code != http.StatusBadRequest {
			t.Errorf("?%s = %d %s, want 400", query, w.Code, w.Body)
		}
	}
}

func TestReadOnlyTellsWorkersNothing(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	h := newAPI(api.Options{Backend: b, Commands: operating(t, b, true), ReadOnly: true})
	if w := send(t, h, http.MethodPost, "/control", `{"method":"ping"}`); w.Code != http.StatusNotFound {
		t.Errorf("POST /control = %d %s, want 404", w.Code, w.Body)
	}
	for _, target := range []string{"/methods", "/inspect/celery@w1"} {
		if w := get(t, h, target); w.Code != http.StatusOK {
			t.Errorf("GET %s = %d %s, want 200", target, w.Code, w.Body)
		}
	}
}

// request sends a JSON body with alternating names and values of headers.
func request(h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}
