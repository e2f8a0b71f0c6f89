package auth_test

import (
	"encoding/base64"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/web/auth"
)

func TestUsersSignInAndOut(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret", "bob", "hunter2"), Roles: auth.Roles{Operator: []string{"ann"}}})
	ann, bob := browser(t), browser(t)
	s.shows(ann, nobody)
	s.post(ann, "/login", "user", "ann", "password", "s3cret")
	s.post(bob, "/login", "user", "bob", "password", "hunter2")
	s.shows(ann, "ann by basic as operator with payloads")
	s.shows(bob, "bob by basic as viewer with payloads")
	if _, got := s.post(ann, "/logout"); got != "Sign in:" {
		t.Errorf("after signing out: %q", got)
	}
	s.shows(ann, nobody)
	want := []string{"login  ann", "login  bob", "logout  ann"}
	if diff := cmp.Diff(want, s.log.said()); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

func TestSigningOutEverywhereEndsAllSessionsOfTheUser(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret", "bob", "hunter2")})
	first, second, bob := browser(t), browser(t), browser(t)
	s.post(first, "/login", "user", "ann", "password", "s3cret")
	s.post(second, "/login", "user", "ann", "password", "s3cret")
	s.post(bob, "/login", "user", "bob", "password", "hunter2")
	s.post(first, "/logout/everywhere")
	s.shows(first, nobody)
	s.shows(second, nobody)
	s.shows(bob, "bob by basic as admin with payloads")
}

// TestSessionsOutliveARestart also checks that those that were ended stay so.
func TestSessionsOutliveARestart(t *testing.T) {
	t.Parallel()
	o := auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret")}
	s := newSite(t, o)
	secrets := make([]string, 2)
	for i := range secrets {
		c := browser(t)
		s.post(c, "/login", "user", "ann", "password", "s3cret")
		secrets[i] = sessionOf(s, c)
	}
	ended := s.cookie(secrets[0])
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/logout", http.NoBody)
	s.do(browser(t), r, "Cookie", ended)
	s.start(o)
	s.shows(browser(t), nobody, "Cookie", s.cookie(secrets[0]))
	s.shows(browser(t), "ann by basic as admin with payloads", "Cookie", s.cookie(secrets[1]))
	kept, err := s.store.Sessions(t.Context())
	if err != nil || len(kept) != 1 || strings.Contains(kept[0].Identity, secrets[1]) || string(kept[0].Hash[:]) == secrets[1] {
		t.Errorf("the store has %d sessions, %v; want 1, without its secret", len(kept), err)
	}
}

// TestSessionsOnTwoPorts keeps a browser signed in at two dashboards on one host.
func TestSessionsOnTwoPorts(t *testing.T) {
	t.Parallel()
	one := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret")})
	two := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "bob", "hunter2")})
	c := browser(t)
	one.post(c, "/login", "user", "ann", "password", "s3cret")
	two.post(c, "/login", "user", "bob", "password", "hunter2")
	one.shows(c, "ann by basic as admin with payloads")
	two.shows(c, "bob by basic as admin with payloads")
	two.post(c, "/logout")
	one.shows(c, "ann by basic as admin with payloads")
	two.shows(c, nobody)
}

// sessionOf returns what the cookie of a browser holds.
func sessionOf(s *site, c *http.Client) string {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.server.URL+"/", http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	for _, cookie := range c.Jar.Cookies(r.URL) {
		if cookie.Name+"="+cookie.Value == s.cookie(cookie.Value) {
			return cookie.Value
		}
	}
	s.Fatal("there is no session")
	return ""
}

func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret"), SessionIdle: time.Hour, SessionMax: 3 * time.Hour})
	used, idle := browser(t), browser(t)
	s.post(used, "/login", "user", "ann", "password", "s3cret")
	s.post(idle, "/login", "user", "ann", "password", "s3cret")
	for range 4 {
		s.clock.pass(44 * time.Minute)
		s.shows(used, "ann by basic as admin with payloads")
	}
	s.shows(idle, nobody)
	s.clock.pass(5 * time.Minute)
	s.shows(used, nobody)
}

// TestSessionsAreNotFixed signs in with a session that somebody else knows, and with one that was never begun.
func TestSessionsAreNotFixed(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret")})
	c := browser(t)
	s.post(c, "/login", "user", "ann", "password", "s3cret")
	before := sessionOf(s, c)
	s.post(c, "/login", "user", "ann", "password", "s3cret")
	after := sessionOf(s, c)
	if before == after {
		t.Error("the session is the same after signing in again")
	}
	s.shows(browser(t), nobody, "Cookie", s.cookie(before))
	s.shows(browser(t), nobody, "Cookie", s.cookie(base64.RawURLEncoding.EncodeToString(make([]byte, 32))))
	s.shows(browser(t), nobody, "Cookie", s.cookie(after)+"; "+s.cookie(before))
	s.shows(c, "ann by basic as admin with payloads")
}

func TestPasswordsAreReadAgain(t *testing.T) {
	t.Parallel()
	path := passwordFile(t, "ann", "s3cret", "bob", "hunter2")
	s := newSite(t, auth.Options{HtpasswdFile: path})
	ann, bob := browser(t), browser(t)
	s.post(ann, "/login", "user", "ann", "password", "s3cret")
	s.post(bob, "/login", "user", "bob", "password", "hunter2")
	if err := os.WriteFile(path, []byte(htpasswd(t, "ann", "s3cret, and longer")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.clock.pass(2 * time.Second)
	s.shows(ann, nobody) // she has another password
	s.shows(bob, nobody) // he is gone
	if _, got := s.post(ann, "/login", "user", "ann", "password", "s3cret"); got != "Sign in: The user name or the password is wrong." {
		t.Errorf("with the old password: %q", got)
	}
	s.post(ann, "/login", "user", "ann", "password", "s3cret, and longer")
	s.shows(ann, "ann by basic as admin with payloads")
	if err := os.WriteFile(path, []byte("ann:{SHA}abc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.clock.pass(2 * time.Second)
	s.shows(ann, "ann by basic as admin with payloads") // a file that cannot be read changes nothing
}

func TestHtpasswdSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := htpasswd(t, "ann", "x")
	for text, want := range map[string]string{
		"ann:$apr1$abc$def\n":                        "line 1 has no bcrypt hash: make it with htpasswd -B",
		"ann:{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=":      "line 1 has no bcrypt hash",
		"ann:plain":                                  "line 1 has no bcrypt hash",
		good + "nonsense":                            "line 2 is not of the form user:hash",
		good + ":" + strings.SplitN(good, ":", 2)[1]: "line 2 is not of the form user:hash",
		good + good:                                  "line 2: the user ann is listed twice",
		strings.Replace(good, "$04$", "$31$", 1):     "line 1: the cost 31 of its hash is more than 16",
	} {
		path := passwordFile(t)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := auth.New(t.Context(), auth.Options{Store: newStore(t), HtpasswdFile: path})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

func TestListedUsersAreCheckedEachRequest(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	s := newSite(t, auth.Options{Users: []string{"ann:pass:word", "bob:" + long}})
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	const wrong = "The user name or the password is wrong."
	for header, want := range map[string]string{
		basic("ann", "pass:word"):  "ann by basic as admin with payloads",
		basic("bob", long):         "bob by basic as admin with payloads",
		basic("bob", long[:72]):    wrong, // bcrypt reads no more
		basic("ann", "pass"):       wrong,
		basic("Ann", "pass:word"):  wrong,
		basic("", ""):              wrong,
		basic("ann", ""):           wrong,
		basic("ann\x00", "x"):      wrong,
		"Basic !":                  "The header Authorization cannot be decoded.",
		"Negotiate x":              nobody,
		"Bearer of something else": nobody,
	} {
		s.shows(browser(t), want, "Authorization", header)
	}
	if got := s.Challenge(); got != `Basic realm="Umbel", charset="UTF-8"` {
		t.Errorf("challenge %q", got)
	}
	right := basic("ann", "pass:word")
	s.shows(browser(t), "The header Authorization is given twice.", "Authorization", right, "Authorization", right)
}

// TestGuessingIsSlow tries passwords from one address until it has to wait, and checks that those who know theirs do not.
func TestGuessingIsSlow(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret", "bob", "hunter2")})
	from := func(address string) []string { return []string{"X-Forwarded-For", address} }
	guess := func(user, address string) (int, http.Header) {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.server.URL+"/", http.NoBody)
		r.SetBasicAuth(user, "guess")
		r.Header.Set("X-Forwarded-For", address)
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = w.Body.Close() }()
		return w.StatusCode, w.Header
	}
	refused := 0
	for range 100 {
		if status, _ := guess("ann", "203.0.113.1"); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 90 {
		t.Errorf("%d of 100 guesses from one address had to wait, want 90", refused)
	}
	if status, got := s.get(browser(t), "/", append(from("203.0.113.1"), "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("ann:s3cret")))...); status != http.StatusTooManyRequests {
		t.Errorf("a right guess among wrong ones = %d %q, want 429", status, got)
	}
	// From many addresses, the user is protected; those who have been there are let in.
	s.shows(browser(t), "bob by basic as admin with payloads", append(from("203.0.113.7"), "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("bob:hunter2")))...)
	refused = 0
	for i := range 100 {
		if status, _ := guess("bob", "198.51.100."+string(rune('0'+i%10))+string(rune('0'+i/10%10))); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused < 60 {
		t.Errorf("%d of 100 guesses of one user had to wait, want 70 or a few less", refused)
	}
	s.clock.pass(6 * time.Minute) // what was right is forgotten
	s.post(browser(t), "/login", "user", "x", "password", "y")
	s.shows(browser(t), "bob by basic as admin with payloads", append(from("203.0.113.7"), "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("bob:hunter2")))...)
}

// TestGuessesOfPasswordsInUseAreSlow guesses the password of a script that has just used it: that it is remembered must not
// let guesses through.
func TestGuessesOfPasswordsInUseAreSlow(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret")})
	as := func(address, password string) int {
		status, _ := s.get(browser(t), "/", "X-Forwarded-For", address, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte("ann:"+password)))
		return status
	}
	for range 100 { // her script asks as often as it likes
		if got := as("203.0.113.1", "s3cret"); got != http.StatusOK {
			t.Fatalf("ann is answered %d", got)
		}
	}
	for range 20 {
		as("203.0.113.2", "guess")
	}
	if got := as("203.0.113.2", "s3cret"); got != http.StatusTooManyRequests {
		t.Errorf("a right guess among wrong ones = %d, want 429", got)
	}
	for i := range 40 { // as many addresses
		as("198.51.100."+strconv.Itoa(i), "guess")
	}
	if got := as("198.51.100.99", "s3cret"); got != http.StatusTooManyRequests {
		t.Errorf("a right guess from many addresses = %d, want 429", got)
	}
	if got := as("203.0.113.1", "s3cret"); got != http.StatusOK {
		t.Errorf("ann is answered %d while others guess", got)
	}
	for range 20 {
		as("203.0.113.1", "guess")
	}
	if got := as("203.0.113.1", "s3cret"); got != http.StatusTooManyRequests {
		t.Errorf("a right guess from where ann works = %d, want 429", got)
	}
}

func TestCookiesAreKeptFromOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		prefix, proto string
		want          []string
	}{
		"without TLS":          {"", "", []string{"umbel_session_", "Path=/;", "HttpOnly", "SameSite=Lax", "Max-Age=604800"}},
		"with TLS":             {"", "https", []string{"__Host-umbel_session_", "Path=/;", "HttpOnly", "SameSite=Lax", "Secure"}},
		"with TLS, below path": {"/ops/celery", "https", []string{"__Secure-umbel_session_", "Path=/ops/celery/;", "HttpOnly", "SameSite=Lax", "Secure"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret"), Prefix: test.prefix})
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+test.prefix+"/login", strings.NewReader("user=ann&password=s3cret"))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("X-Forwarded-Proto", test.proto)
			w, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = w.Body.Close() }()
			cookie := w.Header.Get("Set-Cookie")
			for _, part := range test.want {
				if !strings.Contains(cookie, part) {
					t.Errorf("cookie %q lacks %q", cookie, part)
				}
			}
			if secure := strings.Contains(cookie, "; Secure"); secure != (test.proto == "https") {
				t.Errorf("cookie %q", cookie)
			}
		})
	}
}

func TestScriptsWithPasswordsAreRecordedOnceAnHour(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret")})
	for range 3 {
		s.get(browser(t), "/", "Authorization", "Basic YW5uOnMzY3JldA==")
		s.get(browser(t), "/", "Authorization", "Basic YW5uOnMzY3JldA==")
		s.clock.pass(time.Hour)
	}
	if diff := cmp.Diff([]string{"login  ann", "login  ann", "login  ann"}, s.log.said()); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}
