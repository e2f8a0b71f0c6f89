package auth_test

import (
	"context"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/web/auth"
)

// site is a dashboard that consists of signing in: / says who asks.
type site struct {
	*testing.T
	*auth.Service
	server *httptest.Server
	store  *sqlite.DB
	clock  *clock
	log    *auditRecords
}

// clock is set by a test.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// auditRecords is an audit log.
type auditRecords struct {
	mu   sync.Mutex
	list []history.AuditRecord
}

func (a *auditRecords) Append(_ context.Context, r history.AuditRecord) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list = append(a.list, r)
	return nil
}

// said returns the actions and outcomes of the records, with who took them.
func (a *auditRecords) said() (list []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.list {
		list = append(list, strings.TrimSpace(r.Action+" "+string(r.Outcome)+" "+r.Actor))
	}
	return list
}

// newStore returns an empty history.
func newStore(t *testing.T) *sqlite.DB {
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
	return db
}

// newSite serves o.
func newSite(t *testing.T, o auth.Options) *site {
	t.Helper()
	s := &site{T: t, store: newStore(t), clock: &clock{now: time.Now()}, log: new(auditRecords)}
	s.start(o)
	return s
}

// start serves o on the store that is there.
func (s *site) start(o auth.Options) {
	s.Helper()
	if s.server != nil {
		s.server.Close()
	}
	o.Store, o.Audit = s.store, s.log
	if o.Now == nil {
		o.Now = s.clock.Now
	}
	var err error
	if s.Service, err = auth.New(s.Context(), o); err != nil {
		s.Fatal(err)
	}
	s.server = httptest.NewServer(s.routes(o.Prefix))
	s.Cleanup(s.server.Close)
}

// cookie is what a browser sends that has a session at the site's address of now.
func (s *site) cookie(secret string) string {
	_, port, _ := net.SplitHostPort(s.server.Listener.Addr().String())
	return "umbel_session_" + port + "=" + secret
}

// routes are as web has them, with pages of plain text.
func (s *site) routes(prefix string) http.Handler {
	m := http.NewServeMux()
	p := textPages{prefix}
	handle := func(pattern string, h func(w http.ResponseWriter, r *http.Request)) {
		method, path, _ := strings.Cut(pattern, " ")
		m.HandleFunc(method+" "+prefix+path, func(w http.ResponseWriter, r *http.Request) {
			g, err := s.Authenticate(r)
			ctx := auth.NewContext(r.Context(), g)
			if err != nil {
				ctx = auth.Refused(ctx, err)
			}
			h(w, r.WithContext(ctx))
		})
	}
	protected := func(h func(w http.ResponseWriter, r *http.Request)) func(w http.ResponseWriter, r *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			if why := auth.Decide(r.Context(), auth.View); why != nil {
				http.Error(w, why.Message, why.Status)
				return
			}
			h(w, r)
		}
	}
	handle("GET /login", func(w http.ResponseWriter, r *http.Request) { s.ServeSignIn(w, r, p) })
	handle("POST /login", func(w http.ResponseWriter, r *http.Request) { s.ServePassword(w, r, p) })
	handle("GET /login/{name}", func(w http.ResponseWriter, r *http.Request) { s.ServeProvider(w, r, p, r.PathValue("name")) })
	handle("POST /logout", func(w http.ResponseWriter, r *http.Request) { s.ServeSignOut(w, r, p, false) })
	handle("POST /logout/everywhere", func(w http.ResponseWriter, r *http.Request) { s.ServeSignOut(w, r, p, true) })
	handle("GET /tokens", protected(func(w http.ResponseWriter, r *http.Request) { s.ServeTokens(w, r, p) }))
	handle("POST /tokens", protected(func(w http.ResponseWriter, r *http.Request) { s.ServeCreateToken(w, r, p) }))
	handle("POST /tokens/revoke", protected(func(w http.ResponseWriter, r *http.Request) { s.ServeRevokeToken(w, r, p) }))
	handle("GET /{$}", protected(func(w http.ResponseWriter, r *http.Request) {
		g := auth.FromContext(r.Context())
		payload := ""
		if g.Payload {
			payload = " with payloads"
		}
		_, _ = w.Write([]byte(g.User + " by " + g.Method + " as " + string(g.Role) + payload))
	}))
	return m
}

// textPages draws pages as text.
type textPages struct{ prefix string }

func (textPages) SignIn(w http.ResponseWriter, _ *http.Request, status int, v auth.SignInPage) {
	text := "Sign in: " + v.Message
	for _, p := range v.Providers {
		text += " [" + p.Label + "]"
	}
	write(w, status, text)
}

func (textPages) Tokens(w http.ResponseWriter, _ *http.Request, status int, v auth.TokensPage) {
	text := "Tokens: " + v.Message + v.Secret
	for _, t := range v.Tokens {
		text += " [" + t.Name + " of " + auth.TokenOwner(t) + "]"
	}
	write(w, status, text)
}

func (textPages) Problem(w http.ResponseWriter, _ *http.Request, status int, title, message string) {
	write(w, status, title+": "+message)
}

func (p textPages) Back(target string) string {
	if strings.HasPrefix(target, p.prefix+"/") {
		return target
	}
	return p.prefix + "/"
}

func write(w http.ResponseWriter, status int, text string) {
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text))
}

// browser keeps cookies and follows redirects.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// get returns the status and the text of a page of the site.
func (s *site) get(c *http.Client, path string, header ...string) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.server.URL+path, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	return s.do(c, r, header...)
}

// post sends a form of names and values.
func (s *site) post(c *http.Client, path string, fields ...string) (int, string) {
	s.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.server.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	return s.do(c, r, "Content-Type", "application/x-www-form-urlencoded")
}

func (s *site) do(c *http.Client, r *http.Request, header ...string) (int, string) {
	s.Helper()
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w, err := c.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = w.Body.Close() }()
	var text strings.Builder
	if _, err := copyBounded(&text, w); err != nil {
		s.Fatal(err)
	}
	return w.StatusCode, strings.TrimSpace(text.String())
}

// shows fails the test unless / answers with a text.
func (s *site) shows(c *http.Client, want string, header ...string) {
	s.Helper()
	if status, got := s.get(c, "/", header...); got != want {
		s.Errorf("/ = %d %q, want %q", status, got, want)
	}
}

const nobody = "Sign in first."

// htpasswd returns a line of such a file.
func htpasswd(t *testing.T, user, password string) string {
	t.Helper()
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return user + ":" + strings.Replace(string(hash), "$2a$", "$2y$", 1) + "\n"
}

// passwordFile returns a file of users and passwords in turn.
func passwordFile(t *testing.T, users ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "htpasswd")
	text := "# users\n\n"
	for i := 0; i < len(users); i += 2 {
		text += htpasswd(t, users[i], users[i+1])
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
