package web_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/api"
)

// route is a route with an address for its parameters.
type route struct{ method, path string }

func (r route) String() string { return r.method + " " + r.path }

func (r route) ofAPI() bool { return strings.HasPrefix(r.path, "/api/") || r.path == "/mcp" }

// flower reports whether a route is one of Flower's, which answers as Flower does.
func (r route) flower() bool {
	return strings.HasPrefix(r.path, "/api/") && !strings.HasPrefix(r.path, "/api/v1/") || r.path == "/tasks/datatable"
}

// everyRoute is a dashboard that has all routes, with an address of each.
func everyRoute(t *testing.T) (h *web.Handler, routes []route) {
	t.Helper()
	o := web.Options{Backend: newNamedBackend(t)}
	startWorkers(t, &o, &fakeResults{records: map[string]results.Result{}})
	h, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	err = chi.Walk(h.Routed(), func(method, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		var path strings.Builder
		for segment := range strings.SplitSeq(strings.TrimPrefix(pattern, "/"), "/") {
			if strings.HasPrefix(segment, "{") || segment == "*" {
				segment = "task-01"
			}
			path.WriteString("/" + segment)
		}
		routes = append(routes, route{method, path.String()})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(routes) < 60 {
		t.Fatalf("only %d routes were seen", len(routes))
	}
	return h, routes
}

// zeros is a body without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// Whatever is sent to a route: it is refused within bounds, and leaves nothing behind.
func TestEveryRouteBoundsBodies(t *testing.T) { //nolint:paralleltest // it measures the process
	h, routes := everyRoute(t)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	var idle runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&idle)
	deepJSON := strings.Repeat("[", api.MaxBody)
	deepArguments := "check=1&name=billing.charge&kwargs={}&args=" + strings.Repeat("[", api.MaxBody-143)
	bodies := map[string]struct {
		length int64
		body   func() io.Reader
		parsed bool // so it needs no trial of a route that reads no body
		want   func(r route, status int) bool
	}{
		"a long body": {
			length: 400 << 20, body: func() io.Reader { return io.LimitReader(zeros{}, 400<<20) },
			want: func(_ route, status int) bool { return status == http.StatusRequestEntityTooLarge },
		},
		"a body without an end": {
			length: -1, body: func() io.Reader { return zeros{} },
			want: func(_ route, status int) bool { return status == http.StatusRequestEntityTooLarge },
		},
		"deep JSON": {
			length: api.MaxBody, body: func() io.Reader { return strings.NewReader(deepJSON) }, parsed: true,
			want: func(r route, status int) bool {
				if r.flower() {
					return status < 500
				}
				if !r.ofAPI() {
					return status == http.StatusUnsupportedMediaType
				}
				return status >= 400 && status < 500
			},
		},
		"deep arguments": {
			length: api.MaxBody - 100, body: func() io.Reader { return strings.NewReader(deepArguments) }, parsed: true,
			want: func(r route, status int) bool {
				return (status < 500 || r.path == "/ws") && (!r.ofAPI() || r.flower() || status == http.StatusUnsupportedMediaType)
			},
		},
	}
	for name, b := range bodies {
		for _, r := range routes {
			if b.parsed && (r.method == http.MethodGet || r.method == http.MethodHead) {
				continue
			}
			kind := "application/json"
			if name == "deep arguments" {
				kind = "application/x-www-form-urlencoded"
			}
			status, answer := send(t, srv.URL, r, b.body(), b.length, "Content-Type", kind)
			if !b.want(r, status) {
				t.Errorf("%s with %s: status %d, %.300s", r, name, status, answer)
			}
			if r.ofAPI() && !r.flower() && r.path != "/mcp" && status >= 400 && !strings.Contains(answer, `"detail"`) && r.method != http.MethodHead {
				t.Errorf("%s with %s: status %d without a problem document: %.300s", r, name, status, answer)
			}
		}
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if after.Sys > idle.Sys+200<<20 {
		t.Errorf("%d bytes of memory in use, %d before", after.Sys, idle.Sys)
	}
}

// send sends a request with a body, and returns the answer.
func send(t *testing.T, url string, r route, body io.Reader, length int64, header ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, r.method, url+r.path, body)
	if err != nil {
		t.Fatal(err)
	}
	q.ContentLength = length
	q.Header.Set("Expect", "100-continue") // so that a refusal does not cross with the body
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: timeout}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(q)
	if err != nil {
		t.Errorf("%s: %v", r, err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(answer)
}

// A body that does not come ends its request, and holds nobody else up meanwhile.
func TestEveryRouteTiresOfSlowBodies(t *testing.T) {
	t.Parallel()
	h, routes := everyRoute(t)
	h.WaitForBodies(300 * time.Millisecond)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	var all sync.WaitGroup
	for _, r := range routes {
		all.Go(func() {
			var d net.Dialer
			conn, err := d.DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Errorf("%s: %v", r, err)
				return
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(timeout))
			kind := "application/x-www-form-urlencoded"
			if r.ofAPI() {
				kind = "application/json"
			}
			_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n{", r.method, r.path, kind)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Errorf("%s: %v", r, err)
				return
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusRequestTimeout || !resp.Close {
				t.Errorf("%s: status %d, want 408 and an end of the connection", r, resp.StatusCode)
			}
		})
	}
	if got := visit(t, h, "/"); got.Code != http.StatusOK {
		t.Errorf("another's page = %d", got.Code)
	}
	all.Wait()
}

// Pages of other sites can link here. They learn nothing, and cost nothing, by anything else.
func TestEveryRouteRefusesForeignPages(t *testing.T) {
	t.Parallel()
	h, routes := everyRoute(t)
	routes = append(routes, route{http.MethodGet, "/tasks/nope"}, route{http.MethodGet, "/nope"}, route{http.MethodGet, "/api/v1/tasks/nope"})
	foreign := map[string][]string{
		"no-cors fetch":      {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty"},
		"prefetch by link":   {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "empty", "Sec-Purpose", "prefetch"},
		"speculation":        {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Sec-Purpose", "prefetch;prerender"},
		"image":              {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"},
		"script of a sister": {"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"},
		"frame":              {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"},
		"CORS":               {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty", "Origin", "https://evil.example"},
		"socket":             {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "websocket", "Sec-Fetch-Dest", "websocket", "Origin", "https://evil.example"},
	}
	for name, header := range foreign {
		answers := map[string]string{}
		for _, r := range routes {
			w := request(t, h, r.method, r.path, "", header...)
			if w.Code != http.StatusForbidden {
				t.Errorf("%s by %s: status %d, want 403", r, name, w.Code)
			}
			kind := r.method + " page"
			if r.ofAPI() {
				kind = r.method + " API"
			}
			got := fmt.Sprint(w.Header()) + w.Body.String()
			if known, ok := answers[kind]; ok && known != got {
				t.Errorf("%s by %s differs from another: %s, not %s", r, name, got, known)
			}
			answers[kind] = got
		}
	}
	for name, header := range map[string][]string{
		"link":         {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
		"own script":   {"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"},
		"address bar":  {"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
		"old browser":  {"Origin", "https://elsewhere.example"},
		"curl":         nil,
		"plain origin": {"Origin", "http://example.com"},
	} {
		for _, path := range []string{"/", "/tasks?q=state:failure", "/api/v1/tasks", "/metrics", "/healthz"} {
			if w := request(t, h, http.MethodGet, path, "", header...); w.Code != http.StatusOK {
				t.Errorf("%s by %s: status %d, want 200", path, name, w.Code)
			}
		}
	}
}

// A page that came without TLS may be anybody's.
func TestPagesWithoutTLSChangeNothingBehindIt(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Hosts: []string{"localhost", "ops.example"}})
	for name, tc := range map[string]struct {
		header []string
		want   int
	}{
		"https by a proxy":            {[]string{"X-Forwarded-Proto", "https", "Origin", "https://ops.example"}, http.StatusSeeOther},
		"https, hidden host":          {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://ops.example"}, http.StatusSeeOther},
		"http all the way":            {[]string{"Origin", "http://ops.example"}, http.StatusSeeOther},
		"http, told apart by browser": {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "http://ops.example"}, http.StatusForbidden},
		"http, told apart by proxy":   {[]string{"X-Forwarded-Proto", "https", "Origin", "http://ops.example"}, http.StatusForbidden},
	} {
		header := append([]string{"Host", "ops.example", "Content-Type", "application/x-www-form-urlencoded"}, tc.header...)
		if got := request(t, h, http.MethodPost, "/theme", "theme=dark", header...).Code; got != tc.want {
			t.Errorf("%s: status %d, want %d", name, got, tc.want)
		}
	}
	if got := request(t, h, http.MethodGet, "/ws", "", "Host", "ops.example", "X-Forwarded-Proto", "https", "Origin", "http://ops.example").Code; got != http.StatusForbidden {
		t.Errorf("socket of a page without TLS: status %d, want 403", got)
	}
}
