package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/go-chi/chi/v5"

	"github.com/umbelhq/umbel/internal/livetest"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

func newWeb(t *testing.T, o web.Options) *web.Handler {
	t.Helper()
	if o.Backend == nil {
		o.Backend = newBackend(t, state.Options{})
	}
	h, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// request serves one request. Header is alternating names and values.
func request(t *testing.T, h http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// However a host program mounts the dashboard, every address on the first page leads back into it.
func TestMounts(t *testing.T) {
	t.Parallel()
	const prefix = "/ops/celery"
	h := newWeb(t, web.Options{Prefix: prefix})
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", h)
	stripping := http.NewServeMux()
	stripping.Handle(prefix+"/", http.StripPrefix(prefix, h))
	router := chi.NewRouter()
	router.Mount(prefix, h)
	nested := chi.NewRouter()
	nested.Route("/ops", func(r chi.Router) { r.Handle("/celery/*", h); r.Handle("/celery", h) })
	mounts := map[string]struct {
		host     http.Handler
		external string // what a proxy takes off before the request arrives
	}{
		"alone":             {host: h},
		"ServeMux":          {host: mux},
		"StripPrefix":       {host: stripping},
		"chi Mount":         {host: router},
		"chi Handle":        {host: nested},
		"proxy that strips": {host: h, external: prefix},
	}
	for name, m := range mounts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(m.host)
			t.Cleanup(srv.Close)
			get := func(address string) *http.Response {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+strings.TrimPrefix(address, m.external), nil)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := http.DefaultTransport.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = resp.Body.Close() })
				return resp
			}
			page, err := io.ReadAll(get(prefix + "/").Body)
			if err != nil {
				t.Fatal(err)
			}
			addresses := append(find(`(?:href|src)="(/[^"#]*)`, string(page)),
				prefix+"/tasks/task-01", prefix+"/workers/celery@b%2F1%2520%C3%BC", prefix+"/api/v1/tasks/task-01",
				prefix+"/api/v1/workers/celery@b%2F1%2520%C3%BC", prefix+"/api/v1/openapi.json", prefix+"/healthz", prefix+"/readyz")
			if len(addresses) < 15 {
				t.Errorf("only %d addresses on the first page", len(addresses))
			}
			for _, a := range addresses {
				if !strings.HasPrefix(a, prefix+"/") {
					t.Errorf("address %s is outside %s", a, prefix)
				}
				if resp := get(a); resp.StatusCode != http.StatusOK {
					t.Errorf("%s answers %s", a, resp.Status)
				}
			}
			if m.external != "" {
				return // the proxy cannot ask for an empty path
			}
			if resp := get(prefix); resp.Header.Get("Location") != prefix+"/" {
				t.Errorf("%s answers %s to %q, want a redirect to %s/", prefix, resp.Status, resp.Header.Get("Location"), prefix)
			}
		})
	}
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		prefix string
		want   string // of the link to the tasks; empty for an error
	}{
		"root":          {"", "/tasks"},
		"slash":         {"/", "/tasks"},
		"without slash": {"ops", "/ops/tasks"},
		"both slashes":  {"/ops/celery/", "/ops/celery/tasks"},
		"dots":          {"/ops/../etc", ""},
		"empty segment": {"/ops//celery", ""},
		"query":         {"/ops?x", ""},
		"escape":        {"/ops%2Fcelery", ""},
		"quote":         {`/o"ps`, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := web.New(web.Options{Backend: newBackend(t, state.Options{}), Prefix: tc.prefix})
			if tc.want == "" {
				if err == nil {
					t.Errorf("New took the prefix %q", tc.prefix)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if page := visit(t, h, "/").Body.String(); !strings.Contains(page, `href="`+tc.want+`"`) {
				t.Errorf("first page does not link to %s", tc.want)
			}
		})
	}
}

func TestOptionsAreValidated(t *testing.T) {
	t.Parallel()
	backend := newBackend(t, state.Options{})
	tests := map[string]web.Options{
		"no backend":       {},
		"origin with path": {Backend: backend, Origins: []string{"https://ops.example/x"}},
		"negative sockets": {Backend: backend, MaxSockets: -1},
	}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := web.New(o); err == nil {
				t.Error("New succeeded, want an error")
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{})
	const page, data, other = "no-store", "no-store", ""
	asset := find(`href="([^"]*umbel\.css)"`, visit(t, h, "/").Body.String())[0]
	tests := map[string]struct {
		target string
		status int
		cache  string
	}{
		"page":         {"/", 200, page},
		"missing page": {"/nope", 404, other},
		"missing task": {"/tasks/nope", 404, page},
		"API":          {"/api/v1/tasks", 200, data},
		"API problem":  {"/api/v1/tasks/nope", 404, data},
		"health":       {"/healthz", 200, data},
		"asset":        {asset, 200, "public, max-age=31536000, immutable"},
		"old asset":    {"/assets/0123456789ab/umbel.css", 200, "no-cache"},
		"no asset":     {"/assets/0123456789ab/nope.css", 404, other},
		"icon":         {"/favicon.ico", 302, other},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				w := request(t, h, method, tc.target, "")
				if w.Code != tc.status {
					t.Errorf("%s: status = %d, want %d", method, w.Code, tc.status)
				}
				if got := w.Header().Get("Cache-Control"); got != tc.cache {
					t.Errorf("%s: Cache-Control = %q, want %q", method, got, tc.cache)
				}
				for header, want := range map[string]string{
					"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "X-Robots-Tag": "noindex, nofollow",
				} {
					if got := w.Header().Get(header); got != want {
						t.Errorf("%s: %s = %q, want %q", method, header, got, want)
					}
				}
				policy := w.Header().Get("Content-Security-Policy")
				if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(policy, "unsafe") {
					t.Errorf("%s: policy = %q", method, policy)
				}
			}
		})
	}
}

func TestForwardedPrefixIsNotTrusted(t *testing.T) {
	t.Parallel()
	w := request(t, newWeb(t, web.Options{Prefix: "/ops"}), http.MethodGet, "/", "", "X-Forwarded-Prefix", "//evil.example")
	if strings.Contains(w.Body.String(), "evil.example") {
		t.Error("the page repeats X-Forwarded-Prefix")
	}
}

// A first visit costs at most 40 kB: page, style, scripts and icons as they travel. The library that draws charts comes later.
func TestFirstLoadIsLight(t *testing.T) {
	t.Parallel()
	const most = 40_000
	h := newWeb(t, web.Options{})
	for _, target := range []string{"/", "/tasks", "/tasks/task-01", "/workers"} {
		page := visit(t, h, target).Body.String()
		addresses := append(find(`(?:src|rel="stylesheet" href|rel="modulepreload" href|image/svg\+xml" href)="([^"]*)"`, page), find(`<use href="([^"#]*)`, page)[0], target)
		sum := 0
		for _, a := range addresses {
			w := request(t, h, http.MethodGet, a, "", "Accept-Encoding", "gzip")
			if got := w.Header().Get("Content-Encoding"); got != "gzip" {
				t.Errorf("%s: Content-Encoding = %q, want gzip", a, got)
			}
			sum += w.Body.Len()
		}
		if len(addresses) < 5 || len(addresses) > 9 || sum > most {
			t.Errorf("%s: %v are %d bytes, want five to nine, at most %d", target, addresses, sum, most)
		}
		t.Logf("%s: %d bytes", target, sum)
	}
}

func TestSocket(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops"})
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if w := visit(t, h, "/ops/ws"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("before Run: status = %d, want 503", w.Code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- h.Run(ctx) }()
	open := func(query url.Values) (conn *websocket.Conn, first livetest.Message) {
		for conn == nil && t.Context().Err() == nil { // until Run has begun
			conn, _, _ = websocket.Dial(t.Context(), srv.URL+"/ops/ws?"+query.Encode(), nil)
		}
		conn.SetReadLimit(1 << 20)
		var r livetest.Reader
		for !first.Frame {
			var err error
			if first, _, err = r.Read(t.Context(), conn); err != nil {
				t.Fatal(err)
			}
		}
		return conn, first
	}
	conn, _ := open(url.Values{"topic": {"/tasks"}})
	_ = conn.CloseNow()
	// What a page shows need not be sent again, unless a busy machine has counted more facets since.
	var first livetest.Message
	for range 20 {
		page := find(`data-page="([^"]*)"`, visit(t, h, "/ops/tasks").Body.String())
		conn, first = open(url.Values{"topic": {"/tasks"}, "page": page})
		_ = conn.CloseNow()
		if !first.Reset && len(first.Ops) == 0 {
			break
		}
	}
	if first.Reset || len(first.Ops) > 0 {
		t.Errorf("first frame after the page = %+v, want no ops", first)
	}
	conn, first = open(url.Values{"topic": {"/tasks?q=state%3Afailure"}})
	if !strings.Contains(fmt.Sprint(first.Ops), "t-task-28") {
		t.Errorf("frame = %+v, want the row of task-28", first)
	}
	cancel()
	if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("after Run: %v, want status 1001", err)
	}
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
}
