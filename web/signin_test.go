package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
)

// newSignIn returns a dashboard below /ops at which ann and bob sign in.
func newSignIn(t *testing.T, o auth.Options) http.Handler {
	t.Helper()
	db, err := sqlite.Open(t.Context(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Store, o.Prefix, o.Users = db, "/ops", []string{"ann:s3cret", "bob:hunter2"}
	s, err := auth.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return newWeb(t, web.Options{Prefix: "/ops", Auth: s})
}

const formType = "application/x-www-form-urlencoded"

// signIn returns the cookie of ann's session.
func signIn(t *testing.T, h http.Handler, user, password string) string {
	t.Helper()
	body := url.Values{"user": {user}, "password": {password}}.Encode()
	w := request(t, h, http.MethodPost, "/ops/login", body, "Content-Type", formType)
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	if w.Code != http.StatusSeeOther || cookie == "" {
		t.Fatalf("sign in %s: %d %s", user, w.Code, w.Body)
	}
	return cookie
}

// TestOversizedBodiesAreReadNoFurther sends 20 MB before and after signing in.
func TestOversizedBodiesAreReadNoFurther(t *testing.T) {
	t.Parallel()
	h := newSignIn(t, auth.Options{})
	session, large := signIn(t, h, "ann", "s3cret"), strings.Repeat("x", 20_000_000)
	for _, cookie := range []string{"", session} {
		for path, kind := range map[string]string{"/ops/login": formType, "/ops/tokens": formType, "/ops/api/v1/purge": "application/json", "/ops/mcp": "application/json"} {
			body := strings.NewReader(large)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
			r.Header.Set("Content-Type", kind)
			r.Header.Set("Cookie", cookie)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			read := body.Size() - int64(body.Len())
			if read > 10<<20 || w.Code < 300 {
				t.Errorf("POST %s, cookie %q: %d, %d bytes were read", path, cookie, w.Code, read)
			}
			if cookie == "" && path != "/ops/login" && read > 0 {
				t.Errorf("POST %s: %d bytes of a stranger were read", path, read)
			}
		}
	}
}

func TestSigningInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	h := newSignIn(t, auth.Options{})
	for next, want := range map[string]string{
		"/ops/tasks?q=state%3Afailure": "/ops/tasks?q=state%3Afailure",
		"":                             "/ops/",
		"https://attacker.example/":    "/ops/",
		"//attacker.example/":          "/ops/",
		"///attacker.example":          "/ops/",
		`/\attacker.example`:           "/ops/",
		`/ops/\..\attacker.example`:    "/ops/",
		"/ops/../../attacker":          "/ops/",
		"/ops//attacker.example":       "/ops/attacker.example",
		"javascript:alert(1)":          "/ops/",
		"/ops/\r\nSet-Cookie: a=b":     "/ops/",
		"/opsattacker":                 "/ops/",
		"ops/tasks":                    "/ops/",
		"/\t/attacker.example":         "/ops/",
		"http:/ops/":                   "/ops/",
		"@attacker.example/ops/":       "/ops/",
		"/ops/%2e%2e/%2e%2e/attacker":  "/ops/",
		"/ops/tasks#//attacker":        "/ops/tasks",
	} {
		body := url.Values{"user": {"ann"}, "password": {"s3cret"}, "next": {next}}.Encode()
		w := request(t, h, http.MethodPost, "/ops/login", body, "Content-Type", formType)
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != want {
			t.Errorf("next %q leads to %q (%d), want %q", next, got, w.Code, want)
		}
	}
}

func TestPagesToSignInShowNothingOfTheCluster(t *testing.T) {
	t.Parallel()
	h := newSignIn(t, auth.Options{})
	w := request(t, h, http.MethodGet, "/ops/login?next=/ops/tasks", "")
	page := w.Body.String()
	if w.Code != http.StatusOK || !strings.Contains(page, `<form class="fields" action="/ops/login" method="post">`) || strings.Contains(page, "rabbit") {
		t.Errorf("got %d %s", w.Code, page)
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'") {
		t.Errorf("policy %q", policy)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control %q", got)
	}
	w = request(t, h, http.MethodPost, "/ops/login", "user=%3Cscript%3E&password=x", "Content-Type", formType)
	if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "<script>") || !strings.Contains(w.Body.String(), "The user name or the password is wrong.") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

func TestSessionsAreUsedByPagesAndAPI(t *testing.T) {
	t.Parallel()
	h := newSignIn(t, auth.Options{Roles: auth.Roles{Admin: []string{"ann"}}})
	ann, bob := signIn(t, h, "ann", "s3cret"), signIn(t, h, "bob", "hunter2")
	for path, who := range map[string][2]int{
		"/ops/tasks": {200, 200}, "/ops/api/v1/tasks": {200, 200}, "/tasks": {200, 200}, "/ops/tokens": {200, 200},
	} {
		for i, cookie := range []string{ann, bob} {
			if w := request(t, h, http.MethodGet, path, "", "Cookie", cookie); w.Code != who[i] {
				t.Errorf("%s of %d: %d, want %d", path, i, w.Code, who[i])
			}
		}
		if w := request(t, h, http.MethodGet, path, ""); w.Code != http.StatusSeeOther && w.Code != http.StatusUnauthorized {
			t.Errorf("%s of nobody: %d", path, w.Code)
		}
	}
	page := request(t, h, http.MethodGet, "/ops/tasks", "", "Cookie", bob).Body.String()
	for _, want := range []string{"<b>bob</b>", "Role: viewer", `<form action="/ops/logout" method="post">`} {
		if !strings.Contains(page, want) {
			t.Errorf("the menu of the user lacks %s", want)
		}
	}
	request(t, h, http.MethodPost, "/ops/logout", "", "Cookie", bob)
	if w := request(t, h, http.MethodGet, "/ops/api/v1/tasks", "", "Cookie", bob); w.Code != http.StatusUnauthorized {
		t.Errorf("after signing out: %d", w.Code)
	}
}

// TestOtherSitesCannotSignAnybodyInOrOut sends forms as a browser sends them for pages of other sites.
func TestOtherSitesCannotSignAnybodyInOrOut(t *testing.T) {
	t.Parallel()
	h := newSignIn(t, auth.Options{})
	ann := signIn(t, h, "ann", "s3cret")
	for name, header := range map[string][]string{
		"Sec-Fetch-Site":       {"Sec-Fetch-Site", "cross-site"},
		"same site":            {"Sec-Fetch-Site", "same-site"},
		"Origin":               {"Origin", "https://attacker.example"},
		"opaque Origin":        {"Origin", "null"},
		"both":                 {"Sec-Fetch-Site", "cross-site", "Origin", "https://attacker.example"},
		"Origin of other port": {"Origin", "http://example.com:8080"},
	} {
		for path, body := range map[string]string{
			"/ops/login": "user=ann&password=s3cret", "/ops/logout": "", "/ops/logout/everywhere": "", "/ops/tokens": "name=x&role=viewer&days=1", "/ops/tokens/revoke": "id=1",
		} {
			w := request(t, h, http.MethodPost, path, body, append([]string{"Cookie", ann, "Content-Type", formType}, header...)...)
			if w.Code != http.StatusForbidden || w.Header().Get("Set-Cookie") != "" {
				t.Errorf("%s of %s: %d, cookie %q; want 403", name, path, w.Code, w.Header().Get("Set-Cookie"))
			}
		}
	}
	if w := request(t, h, http.MethodGet, "/ops/logout", "", "Cookie", ann); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a link signs out: %d", w.Code)
	}
	if w := request(t, h, http.MethodGet, "/ops/tasks", "", "Cookie", ann); w.Code != http.StatusOK {
		t.Errorf("ann is signed out: %d", w.Code)
	}
}

func TestTooManyAttemptsSayWhenToTryAgain(t *testing.T) {
	t.Parallel()
	h := newSignIn(t, auth.Options{})
	for i := range 12 {
		w := request(t, h, http.MethodGet, "/ops/api/v1/tasks", "", "Authorization", "Bearer umbel_guess")
		p := request(t, h, http.MethodPost, "/ops/login", "user=&password=", "Content-Type", formType)
		if i < 5 {
			continue
		}
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || p.Code != http.StatusTooManyRequests || p.Header().Get("Retry-After") == "" {
			t.Errorf("attempt %d: API %d after %q, page %d after %q", i, w.Code, w.Header().Get("Retry-After"), p.Code, p.Header().Get("Retry-After"))
		}
	}
}
