package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/api"
)

// office is an API by which people act on a broker with one queue, mail.
type fixture struct {
	http.Handler
	broker *inproc.Broker
	db     *sqlite.DB
	ops    *command.Service
	back   web.Backend
}

// waiting are unfinished tasks, of which whatever is said is taken.
type waiting struct{ command.Dismisser }

func (waiting) Review() state.Reconciliation { return state.Reconciliation{} }

func (waiting) Dismiss(context.Context, string, string) error { return nil }

func (waiting) Reinstate(context.Context, string) error { return nil }

// open opens an office. Nobody sends anything until it runs.
func open(t *testing.T) *fixture {
	t.Helper()
	return openWith(t, func(b *backend) web.Backend { return b })
}

// openWith opens an office on another backend.
func openWith(t *testing.T, backend func(b *backend) web.Backend) *fixture {
	t.Helper()
	cluster := newBackend(t)
	f := &fixture{broker: inproc.New(inproc.Options{}), db: cluster.DB}
	f.broker.Declare("mail")
	b := backend(cluster)
	f.back = b
	kept := locks.NewMemory(locks.DefaultPatterns(), time.Now)
	kept.Set(heldKey, "processing", time.Time{}, true)
	kept.Set(keptKey, "processing", time.Time{}, true)
	watcher, err := locks.New(locks.Options{Source: kept, Tasks: b})
	if err != nil {
		t.Fatal(err)
	}
	f.ops, err = command.New(command.Options{Client: controlClient(t, f.broker), Outbox: f.db, Rules: f.db, Tasks: b, Locks: watcher, Forgetter: forgetting{b}, Dismisser: waiting{}, Outboxes: outboxes(t)})
	if err != nil {
		t.Fatal(err)
	}
	f.Handler = newAPI(api.Options{
		Backend: b, Commands: f.ops, AppOutboxes: outboxes(t), Prefix: "/ops",
	})
	return f
}

// forgetting forgets workers as a monitor does.
type forgetting struct{ web.Backend }

func (f forgetting) ForgetWorker(name string) (forgotten bool) {
	f.View(func(c state.View) { forgotten = c.(*state.Cluster).ForgetWorker(name) })
	return forgotten
}

// leave has a worker say goodbye.
func (f *fixture) leave(name string) {
	hello := heartbeat(name, 33)
	goodbye := state.Event{Kind: state.WorkerOffline, Hostname: name, PID: 33}
	f.back.View(func(c state.View) {
		for i, e := range []*state.Event{&hello, &goodbye} {
			e.Clock, e.Micros, e.ReceivedMicros = int64(i+1), start, start
			c.(*state.Cluster).Apply(e)
		}
	})
}

// run sends what is in the outbox until the test ends, and waits until the broker can be reached.
func (f *fixture) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = f.ops.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	until(t, "the control connection is open", func() bool { return f.ops.Client.Connected() })
}

// put lets messages wait in a queue.
func (f *fixture) put(t *testing.T, queue string, bodies ...string) {
	t.Helper()
	for i, body := range bodies {
		err := f.ops.Client.Publish(t.Context(), queue, broker.Publishing{
			ContentType: "application/json", ContentEncoding: "utf-8", Body: []byte(body),
			Headers: map[string]any{"task": "mail.send", "id": fmt.Sprintf("task-%d", i), "lang": "py"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !is(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestOrdersAreReadStrictly(t *testing.T) {
	t.Parallel()
	f := open(t)
	long := strings.Repeat("x", 2<<20)
	tests := map[string]struct {
		target, body string
		header       []string
		status       int
		location     string
		detail       string
	}{
		"no JSON":         {"/purge", `{`, nil, 400, "body", "unexpected end of JSON input at byte 1"},
		"no object":       {"/purge", `["mail"]`, nil, 400, "body", "expected object"},
		"broken later":    {"/purge", `{"queue":"mail","confirm":}`, nil, 400, "body", "invalid character '}'"},
		"more behind":     {"/purge", `{"queue":"mail"} {}`, nil, 400, "body", "after top-level value"},
		"unknown field":   {"/commands/discard", `{"ids":[1],"quue":"mail"}`, nil, 400, "body.quue", "unexpected property"},
		"other case":      {"/purge", `{"Queue":"mail"}`, nil, 400, "body", `"Queue" is not a known property`},
		"twice":           {"/purge", `{"queue":"mail","queue":"x"}`, nil, 400, "body", `"queue" is given twice`},
		"number for text": {"/purge", `{"queue":7}`, nil, 400, "body.queue", "expected string"},
		"object for text": {"/purge", `{"queue":{"a":1}}`, nil, 400, "body.queue", "expected string"},
		"text for array":  {"/commands/discard", `{"ids":"7"}`, nil, 400, "body.ids", "expected array"},
		"wrong element":   {"/commands/discard", `{"ids":[1,2.5]}`, nil, 400, "body.ids[1]", "expected integer"},
		"null element":    {"/commands/discard", `{"ids":[null]}`, nil, 400, "body.ids[0]", "expected integer"},
		"no ids":          {"/commands/requeue", `{"ids":[]}`, nil, 400, "body.ids", "expected array length >= 1"},
		"too large":       {"/purge", `{"queue":"` + long + `"}`, nil, 413, "", "too large"},
		"form":            {"/purge", `queue=mail`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, "body", "unknown content type"},
		"long wait":       {"/purge?wait=31s", `{"queue":"mail"}`, nil, 400, "query.wait", "at most 30s"},
		"no wait":         {"/purge?wait=0s", `{"queue":"mail"}`, nil, 400, "query.wait", "at most 30s"},
		"wait in seconds": {"/purge?wait=2", `{"queue":"mail"}`, nil, 400, "query.wait", "such as 2s"},
		"dry":             {"/purge?dry_run=yes", `{"queue":"mail"}`, nil, 400, "query.dry_run", "invalid boolean"},
		"dry twice":       {"/purge?dry_run=true&dry_run=true", `{}`, nil, 400, "query.dry_run", "only once"},
		"parameter":       {"/purge?wiat=2s", `{"queue":"mail"}`, nil, 400, "query.wiat", "unknown query parameter"},
		"ids' parameter":  {"/commands/discard?wait=2s", `{"ids":[1]}`, nil, 400, "query.wait", "unknown query parameter"},
		"empty key":       {"/purge", `{"queue":"mail"}`, []string{"Idempotency-Key", ""}, 400, "header.Idempotency-Key", "given once"},
		"long key":        {"/purge", `{"queue":"mail"}`, []string{"Idempotency-Key", long[:256]}, 400, "header.Idempotency-Key", "expected length <= 255"},
		"odd key":         {"/purge", `{"queue":"mail"}`, []string{"Idempotency-Key", "é"}, 400, "header.Idempotency-Key", "printable"},
		"not confirmed":   {"/purge", `{"queue":"mail"}`, nil, 400, "body.confirm", "mail"},
		"no queue":        {"/purge", ``, nil, 400, "", "Request body is required"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := request(f, http.MethodPost, tc.target, tc.body, tc.header...)
			check(t, w)
			body := decode(t, w.Body.String())
			if detail, _ := body["detail"].(string); w.Code != tc.status || !strings.Contains(detail, tc.detail) {
				t.Fatalf("POST %.40s = %d %.300s, want %d with %q", tc.target, w.Code, w.Body, tc.status, tc.detail)
			}
			errs, _ := body["errors"].([]any)
			if tc.location != "" && (len(errs) != 1 || errs[0].(map[string]any)["location"] != tc.location) {
				t.Errorf("errors = %v, want one at %s", errs, tc.location)
			}
		})
	}
	t.Cleanup(func() {
		if list, _, err := f.db.AuditLog(context.Background(), history.AuditFilter{Limit: 10}); err != nil || len(list) > 0 {
			t.Errorf("audit log = %v, %v, want nothing", list, err)
		}
	})
}

func TestOrderIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.run(t)
	f.put(t, "mail", `[[1],{},{}]`, `[[2],{},{}]`)
	dry := request(f, http.MethodPost, "/purge?dry_run=true", `{"queue":"mail"}`)
	preview := decode(t, dry.Body.String())
	if dry.Code != http.StatusOK || preview["confirm"] != "mail" || !strings.Contains(dry.Body.String(), "2 waiting messages") {
		t.Errorf("dry run = %d %s, want 200 with the number of messages and what confirms", dry.Code, dry.Body)
	}
	w := request(f, http.MethodPost, "/purge?wait=20s", `{"queue":"mail","confirm":"mail"}`, "Idempotency-Key", "k 1")
	receipt := decode(t, w.Body.String())
	if w.Code != http.StatusAccepted {
		t.Fatalf("POST /purge = %d %s, want 202", w.Code, w.Body)
	}
	command := receipt["commands"].([]any)[0].(map[string]any)
	if command["state"] != "done" || command["sent_at"] == nil || command["actor"] != "ada" || command["target"] != "queue mail" {
		t.Errorf("command after the wait = %v, want it done", command)
	}
	if got, want := receipt["url"], fmt.Sprintf("/ops/outbox/%v", receipt["request_id"]); got != want {
		t.Errorf("url = %v, want %v", got, want)
	}
	location := w.Header().Get("Location")
	if want := fmt.Sprintf("/ops/api/v1/commands?request=%v", receipt["request_id"]); location != want {
		t.Fatalf("Location = %q, want %q", location, want)
	}
	listed := decode(t, get(t, f, strings.TrimPrefix(location, "/ops/api/v1")).Body.String())["items"].([]any)
	if len(listed) != 1 || fmt.Sprint(listed[0]) != fmt.Sprint(command) {
		t.Errorf("commands at Location = %v, want %v", listed, command)
	}
	again := decode(t, request(f, http.MethodPost, "/purge", `{"queue":"mail","confirm":"mail"}`, "Idempotency-Key", "k 1").Body.String())
	if again["replayed"] != true || again["request_id"] != receipt["request_id"] {
		t.Errorf("the same key again = %v, want order %v replayed", again, receipt["request_id"])
	}
	records := decode(t, get(t, f, "/audit").Body.String())["items"].([]any)
	if len(records) != 1 {
		t.Fatalf("audit log = %v, want one record", records)
	}
	record := records[0].(map[string]any)
	if record["actor"] != "ada" || record["remote_addr"] != "192.0.2.1" || record["action"] != "purge" || record["request_id"] != receipt["request_id"] {
		t.Errorf("audit record = %v", record)
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	t.Parallel()
	full := decode(t, get(t, newAPI(options(t, newBackend(t))), "/openapi.json").Body.String())["paths"].(map[string]any)
	b := newBackend(t)
	for name, h := range map[string]http.Handler{
		"read-only":     newAPI(api.Options{Backend: b, Commands: operating(t, b, true), ReadOnly: true}),
		"read-only all": newAPI(api.Options{Backend: b, Commands: operating(t, b, false), ReadOnly: true}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := decode(t, get(t, h, "/openapi.json").Body.String())["paths"].(map[string]any)
			changing := 0
			for path, item := range full {
				for method := range item.(map[string]any) {
					if method == "get" {
						continue
					}
					changing++
					w := send(t, h, strings.ToUpper(method), strings.ReplaceAll(strings.ReplaceAll(path, "{id}", "1"), "{name}", "x"), `{}`)
					if w.Code != http.StatusNotFound && w.Code != http.StatusMethodNotAllowed {
						t.Errorf("%s %s = %d, want 404 or 405", method, path, w.Code)
					}
					if kept, ok := left[path].(map[string]any); ok && kept[method] != nil {
						t.Errorf("%s %s is documented", method, path)
					}
				}
			}
			if changing < 10 {
				t.Errorf("only %d operations change something in the full document", changing)
			}
		})
	}
}

func TestOrderThatCannotBeKept(t *testing.T) {
	t.Parallel()
	f := open(t)
	if err := f.db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"/purge", "/commands/discard"} {
		body := map[string]string{"/purge": `{"queue":"mail","confirm":"mail"}`, "/commands/discard": `{"ids":[1]}`}[target]
		if w := request(f, http.MethodPost, target, body); w.Code != http.StatusServiceUnavailable {
			t.Errorf("POST %s = %d %s, want 503", target, w.Code, w.Body)
		}
	}
	for _, target := range []string{"/commands", "/commands/1", "/outbox", "/audit"} {
		if w := get(t, f, target); w.Code != http.StatusServiceUnavailable {
			t.Errorf("GET %s = %d %s, want 503", target, w.Code, w.Body)
		}
	}
}

func FuzzOrderBody(f *testing.F) {
	for _, s := range []string{
		``, `{}`, `{"queue":"mail","confirm":"mail"}`, `{"queue":null}`, `{"queue":"\ud800"}`, `[`, `{"queue":"a"}}`, `{"ids":[1,[2]]}`, "\x00",
	} {
		f.Add([]byte(s))
	}
	b := newBackend(f)
	ops, err := command.New(command.Options{Client: controlClient(f, inproc.New(inproc.Options{})), Outbox: b.DB, Tasks: b})
	if err != nil {
		f.Fatal(err)
	}
	h := newAPI(api.Options{Backend: b, Commands: ops})
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, target := range []string{"/purge?dry_run=true", "/commands/discard"} {
			w := request(h, http.MethodPost, target, string(body))
			if w.Code >= http.StatusInternalServerError && w.Code != http.StatusServiceUnavailable {
				t.Errorf("POST %s %q = %d %s", target, body, w.Code, w.Body)
			}
		}
	})
}
