package web_test

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/go-chi/chi/v5"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/issue"
)

var update = flag.Bool("update", false, "rewrite golden files")

// guardedAddress is an address with the action that it needs.
type guardedAddress struct {
	method, pattern string
	action          auth.Action
}

// path is an address of which nothing exists.
func (a guardedAddress) path() string {
	return regexp.MustCompile(`\{[^}]*\}|\*`).ReplaceAllString(a.pattern, "no-such-thing")
}

func (a guardedAddress) String() string { return a.method + " " + a.pattern }

// newGuarded is a dashboard with all routes there are. A proxy says who makes a request.
func newGuarded(t *testing.T, prefix string, more ...func(o *web.Options)) *web.Handler {
	t.Helper()
	s, err := auth.New(t.Context(), auth.Options{
		Store: noCredentials{}, Proxy: auth.Proxy{User: "X-User", Groups: "X-Groups"},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("127.0.0.0/8")},
		Roles: auth.Roles{
			Admin: []string{"group:admin"}, Operator: []string{"group:operator"}, Viewer: []string{"group:viewer"},
			Default: auth.NoRole, Payload: []string{"group:payload"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	o := web.Options{Backend: newNamedBackend(t), Auth: s, Alerts: newAlerts(t, nil), AppOutboxes: watched(t, newShopOutbox()), Prefix: prefix, Demo: true}
	if o.Issues, err = issue.Parse("https://tracker.example/new?title={title}"); err != nil {
		t.Fatal(err)
	}
	startWorkers(t, &o, &fakeResults{records: map[string]results.Result{}})
	for _, f := range more {
		f(&o)
	}
	return newWeb(t, o)
}

// everyAudience is everybody there is, by what a proxy says of them.
func everyAudience() map[auth.Audience]http.Header {
	all := map[auth.Audience]http.Header{{}: {}}
	for _, role := range []auth.Role{auth.Viewer, auth.Operator, auth.Admin} {
		all[auth.Audience{Role: role}] = http.Header{"X-User": {"ann"}, "X-Groups": {string(role)}}
		all[auth.Audience{Role: role, Payload: true}] = http.Header{"X-User": {"ann"}, "X-Groups": {string(role) + ",payload"}}
	}
	return all
}

// guardedAddresses returns all that h routes, by what it registered. It fails for what is routed without.
func guardedAddresses(t *testing.T, h *web.Handler) []guardedAddress {
	t.Helper()
	const api = "/api/v1"
	actions := make(map[string]auth.Action)
	for _, rt := range h.Registered() {
		actions[rt.Method+" "+rt.Pattern] = rt.Action
	}
	var document struct {
		Paths map[string]map[string]struct {
			Action auth.Action `json:"x-action"`
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, api+"/openapi.json", nil)
	r.Header = everyAudience()[auth.Everything]
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\{[^}]*\}|\*`)
	for path, operations := range document.Paths {
		for method, o := range operations {
			actions[strings.ToUpper(method)+" "+parameter.ReplaceAllString(api+path, "{}")] = o.Action
		}
	}
	var list []guardedAddress
	err := chi.Walk(h.Routed(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		key := method + " " + pattern
		if strings.HasPrefix(pattern, api+"/") {
			key = strings.Replace(method, http.MethodHead, http.MethodGet, 1) + " " + parameter.ReplaceAllString(pattern, "{}")
		}
		if actions[key] == "" {
			t.Errorf("%s %s is not registered with an action", method, pattern)
		}
		list = append(list, guardedAddress{method, pattern, actions[key]})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 120 {
		t.Fatalf("only %d routes were seen", len(list))
	}
	return list
}

// Who may take the action of a route gets to it, and nobody else does.
func TestRoutesAdmitThoseWhoMayTakeTheirActions(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, "")
	addresses := guardedAddresses(t, h)
	gone, cancel := context.WithCancel(t.Context())
	cancel() // so that nothing that is admitted takes time
	for audience, header := range everyAudience() {
		t.Run(fmt.Sprintf("%s %v", audience.Role, audience.Payload), func(t *testing.T) {
			t.Parallel()
			for _, a := range addresses {
				r := httptest.NewRequestWithContext(gone, a.method, a.path(), nil)
				r.Header = header.Clone()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				refused := w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden
				switch want := !audience.Allows(a.action); {
				case refused != want:
					t.Errorf("%s, which needs %s: %d, want refused = %v", a, a.action, w.Code, want)
				case refused && (w.Code == http.StatusUnauthorized) != (audience.Role == ""):
					t.Errorf("%s: %d: 401 is for those who are not signed in, 403 for others", a, w.Code)
				}
			}
		})
	}
}

// serveSockets serves h, as newGuarded makes it, until the test ends.
func serveSockets(t *testing.T, h *web.Handler) *httptest.Server {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = h.Run(ctx) })
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		cancel()
		running.Wait()
		srv.Close()
	})
	for { // until Run has begun
		status, err := get(ctx, srv.URL+"/ws", "test", "X-User", "ann", "X-Groups", "viewer")
		if err != nil {
			t.Fatal(err)
		}
		if status == http.StatusUpgradeRequired {
			return srv
		}
	}
}

// A socket shows what its page shows, to the same people.
func TestTopicsAdmitThoseWhoMaySeeTheirPages(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, "")
	ctx := t.Context()
	srv := serveSockets(t, h)
	all := everyAudience()
	actions := h.Topics()
	pages := make(map[string]auth.Action)
	for _, rt := range h.Registered() {
		if _, topic := actions[rt.Pattern]; topic && rt.Method == http.MethodGet {
			pages[rt.Pattern] = rt.Action
		}
	}
	if diff := gocmp.Diff(pages, actions); diff != "" {
		t.Errorf("topics need other actions than their pages (-pages +topics):\n%s", diff)
	}
	var sockets sync.WaitGroup
	for pattern, action := range actions {
		topic := guardedAddress{pattern: pattern}.path()
		for audience, header := range all {
			sockets.Go(func() {
				conn, resp, err := websocket.Dial(ctx, srv.URL+"/ws?topic="+url.QueryEscape(topic), &websocket.DialOptions{HTTPHeader: header})
				if audience.Role == "" {
					if resp == nil || resp.StatusCode != http.StatusUnauthorized {
						t.Errorf("%s: nobody is not refused: %v", topic, err)
					}
					return
				}
				if err != nil {
					t.Errorf("%s as %v: %v", topic, audience, err)
					return
				}
				defer func() { _ = conn.CloseNow() }()
				_, _, err = conn.Read(ctx)
				if got, want := websocket.CloseStatus(err) == 4403, !audience.Allows(action); got != want || !want && err != nil {
					t.Errorf("%s, which needs %s, as %v: %v, want refused = %v", topic, action, audience, err, want)
				}
			})
		}
	}
	sockets.Wait()
}

// The golden file shows in a review who gets a right or loses one.
func TestActionsOfRoutes(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, "")
	var lines []string
	for _, a := range auth.Actions() {
		payload := ""
		if !(auth.Audience{Role: auth.Admin}).Allows(a) {
			payload = ", with payloads"
		}
		lines = append(lines, fmt.Sprintf("%s: %s%s", a, cmp.Or(string(a.Role()), "anybody"), payload))
	}
	lines = append(lines, "")
	for _, a := range guardedAddresses(t, h) {
		if a.method != http.MethodHead { // as GET
			lines = append(lines, fmt.Sprintf("%s %s: %s", a.method, a.pattern, a.action))
		}
	}
	slices.SortFunc(lines[len(auth.Actions())+1:], func(a, b string) int {
		methodA, pathA, _ := strings.Cut(a, " ")
		methodB, pathB, _ := strings.Cut(b, " ")
		return cmp.Or(strings.Compare(pathA, pathB), strings.Compare(methodA, methodB))
	})
	lines = append(lines, "")
	for _, pattern := range slices.Sorted(maps.Keys(h.Topics())) {
		lines = append(lines, fmt.Sprintf("topic %s: %s", pattern, h.Topics()[pattern]))
	}
	got := strings.Join(lines, "\n") + "\n"
	golden := filepath.Join("testdata", "actions.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("what routes need changed; run with -update if that is right (-want +got):\n%s", diff)
	}
}
