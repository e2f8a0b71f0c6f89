package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/mcp"
)

// as sends requests in a role of doorkeeper.
type as string

func (role as) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("As", string(role))
	return http.DefaultTransport.RoundTrip(r)
}

// overStdio is the transport to an assistant's server that asks an Umbel over the network.
func overStdio(t *testing.T, url string, role as) sdk.Transport {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- mcp.Remote{URL: url, Transport: role}.Serve(context.Background(), toServer, fromServer, "1.2.3")
	}()
	t.Cleanup(func() {
		_ = fromClient.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	})
	return &sdk.IOTransport{Reader: toClient, Writer: fromClient}
}

func connect(t *testing.T, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// assistants are sessions of the same role over both transports.
func assistants(t *testing.T, h http.Handler, role as) map[string]*sdk.ClientSession {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return map[string]*sdk.ClientSession{
		"stdio": connect(t, overStdio(t, server.URL, role)),
		"HTTP":  connect(t, &sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: role}}),
	}
}

// use calls a tool and returns its text.
func use(t *testing.T, s *sdk.ClientSession, tool string, arguments any) (text string, failed bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, arguments, err)
	}
	for _, c := range r.Content {
		if c, ok := c.(*sdk.TextContent); ok {
			text += c.Text
		}
	}
	return text, r.IsError
}

type object = map[string]any

// found calls a tool and returns what it found.
func found(t *testing.T, s *sdk.ClientSession, tool string, arguments any) object {
	t.Helper()
	text, failed := use(t, s, tool, arguments)
	var body object
	if err := json.Unmarshal([]byte(text), &body); failed || err != nil {
		t.Fatalf("%s %v: %s", tool, arguments, text)
	}
	return body
}

func list(t *testing.T, body object, key string) []any {
	t.Helper()
	l, ok := body[key].([]any)
	if !ok {
		t.Fatalf("%v has no list %s", body, key)
	}
	return l
}

func TestAssistantsReadTheCluster(t *testing.T) {
	t.Parallel()
	o := web.Options{Backend: newBackend(t, state.Options{})}
	startWorkers(t, &o, &fakeResults{records: map[string]results.Result{}})
	for name, s := range assistants(t, newWeb(t, o), "") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if counts, ok := found(t, s, "status", nil)["counts"].(object); !ok || counts["tasks"] != 30.0 {
				t.Errorf("status: %v, want 30 tasks", counts)
			}
			arguments := object{"query": "state:failure", "limit": 4}
			page := found(t, s, "search_tasks", arguments)
			arguments["cursor"] = page["next"]
			first, second := list(t, page, "items"), list(t, found(t, s, "search_tasks", arguments), "items")
			if len(first) != 4 || len(second) != 4 || first[0].(object)["id"] == second[0].(object)["id"] || page["total"] != 10.0 {
				t.Errorf("search_tasks: %v, then %v, want 4 of 10 and 4 others", first, second)
			}
			task := found(t, s, "get_task", object{"id": "task-01"})
			if len(list(t, task, "events")) != 3 || task["task"].(object)["state"] != "FAILURE" {
				t.Errorf("get_task: %v, want a failure with 3 events", task)
			}
			for _, failure := range list(t, found(t, s, "list_failures", object{"show": "all"}), "items") {
				id := failure.(object)["id"]
				if got := found(t, s, "get_failure", object{"id": id})["id"]; got != id {
					t.Errorf("get_failure %v: %v", id, got)
				}
			}
			cursor := found(t, s, "list_workers", object{"limit": 1})["next"]
			workers := found(t, s, "list_workers", object{"limit": 1, "cursor": cursor})
			if w := list(t, workers, "items"); len(w) != 1 || w[0].(object)["name"] != "celery@b/1%20ü" || workers["total"] != 2.0 {
				t.Errorf("list_workers: %v, want the second of 2", workers)
			}
			if n := found(t, s, "list_workers", object{"status": "stopping"})["total"]; n != 0.0 {
				t.Errorf("%v workers are stopping, want none", n)
			}
			if got := found(t, s, "get_worker", object{"name": "celery@b/1%20ü"}); got["pid"] != 41.0 {
				t.Errorf("get_worker: %v, want PID 41", got)
			}
			list(t, found(t, s, "list_queues", object{"hidden": true}), "items")
		})
	}
}

func TestEveryToolOnlyReads(t *testing.T) {
	t.Parallel()
	for name, s := range assistants(t, newWeb(t, web.Options{}), "") {
		tools, err := s.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(tools.Tools) != 8 {
			t.Errorf("%s: %d tools, want 8", name, len(tools.Tools))
		}
		for _, tool := range tools.Tools {
			if !tool.Annotations.ReadOnlyHint || tool.Description == "" {
				t.Errorf("%s: %+v, want a description and ReadOnlyHint", name, tool)
			}
		}
	}
}

func TestAssistantsAreToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := []struct {
		tool      string
		arguments object
		want      string
	}{
		{"search_tasks", object{"query": "stat:failure"}, "no field stat; the nearest is state"},
		{"search_tasks", object{"limit": 51}, "limit"},
		{"search_tasks", object{"q": "x"}, "q"},
		{"search_tasks", object{"cursor": "x"}, "cursor"},
		{"get_task", object{}, "id"},
		{"get_task", object{"id": "nothing"}, `404 Not Found: Task "nothing" not found`},
		{"get_task", object{"id": "export"}, "no task"},
		{"get_failure", object{"id": "../tasks"}, "404"},
		{"get_worker", object{"name": "celery@"}, "celery@a"},
		{"list_workers", object{"status": "asleep"}, "status"},
		{"list_failures", object{"show": 1}, "show"},
	}
	for name, s := range assistants(t, newWeb(t, web.Options{Backend: newBackend(t, state.Options{})}), "") {
		for _, test := range tests {
			if text, failed := use(t, s, test.tool, test.arguments); !failed || !strings.Contains(text, test.want) {
				t.Errorf("%s: %s %v: %s, want an error with %q", name, test.tool, test.arguments, text, test.want)
			}
		}
		if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "purge"}); err == nil {
			t.Errorf("%s: a tool that does not exist was called", name)
		}
	}
}

func TestAssistantsSeePayloadsIfTheirTokenDoes(t *testing.T) {
	t.Parallel()
	h := secretive(t)
	calls := map[string]object{
		"status": nil, "search_tasks": {}, "get_task": {"id": "task-01"}, "list_failures": {"show": "all"}, "list_workers": nil,
		"get_worker": {"name": "celery@a"}, "list_queues": {"hidden": true},
	}
	for role, want := range map[as]bool{"viewer": true, "viewer/": false, "admin/": false} {
		for name, s := range assistants(t, h, role) {
			seen := false
			for tool, arguments := range calls {
				text, _ := use(t, s, tool, arguments)
				seen = seen || strings.Contains(text, marker)
			}
			if seen != want {
				t.Errorf("%s as %s: payloads seen is %v, want %v", name, role, seen, want)
			}
		}
	}
}

func TestAssistantsWithoutARoleAreRefused(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Auth: doorkeeper{"/login"}})
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	header := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "As"}
	for role, want := range map[string]int{"": 401, "stranger": 401, "viewer": 200} {
		w := request(t, h, http.MethodPost, "/mcp", ping, append(header, role)...)
		if w.Code != want || (w.Header().Get("WWW-Authenticate") != "") != (want == 401) {
			t.Errorf("as %q: %d %s, want %d", role, w.Code, w.Body, want)
		}
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s := connect(t, overStdio(t, server.URL, "stranger"))
	if text, failed := use(t, s, "status", nil); !failed || text != "401 Unauthorized: The password is wrong." {
		t.Errorf("status: %q, want 401", text)
	}
}

func TestOtherSitesDoNotReachTheTools(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Hosts: []string{"localhost"}})
	header := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	for want, more := range map[int][]string{403: {"Origin", "https://evil.example"}, 415: {"Content-Type", "text/plain"}} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(`{}`))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		r.Header.Set(more[0], more[1])
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%v: %d, want %d", more, w.Code, want)
		}
	}
}

func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBackend(t, state.Options{})
	var events []*state.Event
	for i := range 50 {
		e := taskEvent(state.TaskReceived, fmt.Sprintf("long-%02d", i), 100+i)
		e.Args = strings.Repeat("é<", 2_000)
		events = append(events, e)
	}
	b.Apply(events...)
	for name, s := range assistants(t, newWeb(t, web.Options{Backend: b}), "") {
		text, failed := use(t, s, "search_tasks", object{"query": "id:long-*", "limit": 50})
		if failed || len(text) > 50_000 || len(text) < 10_000 || !strings.Contains(text, `"note":"`) {
			t.Errorf("%s: %d bytes: %.300s, want at most 50,000 and a note", name, len(text), text)
		}
		if !json.Valid([]byte(text)) {
			t.Errorf("%s: the result is not JSON", name)
		}
	}
}

// What is nested deeply takes no stack.
func TestDeepMessagesAreRefused(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{})
	const depth = 900_000
	deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
	for _, body := range []string{
		deep, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_tasks","arguments":{"query":` + deep + `}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + deep + `}`, strings.Repeat(`{"jsonrpc":`, depth/8),
	} {
		w := request(t, h, http.MethodPost, "/mcp", body, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
		if w.Code >= 500 || w.Code == 200 && !strings.Contains(w.Body.String(), "rror") {
			t.Errorf("%.90s: %d %.300s, want an error", body, w.Code, w.Body)
		}
	}
}
