package auth_test

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/web/auth"
)

var secretToken = regexp.MustCompile(`umbel_[a-z2-7]{52}`)

// signedIn returns a browser in which a user has signed in.
func (s *site) signedIn(user, password string) *http.Client {
	s.Helper()
	c := browser(s.T)
	s.post(c, "/login", "user", user, "password", password)
	return c
}

// token makes a token and returns its secret.
func (s *site) token(c *http.Client, name, role string, more ...string) string {
	s.Helper()
	status, text := s.post(c, "/tokens", append([]string{"name", name, "role", role, "days", "30"}, more...)...)
	secret := secretToken.FindString(text)
	if status != http.StatusOK || secret == "" {
		s.Fatalf("make token %s: %d %q", name, status, text)
	}
	return secret
}

func TestTokensHaveTheirOwnRights(t *testing.T) {
	t.Parallel()
	path := passwordFile(t, "ann", "s3cret", "bob", "hunter2")
	o := auth.Options{HtpasswdFile: path, Roles: auth.Roles{Operator: []string{"ann"}, Admin: []string{"bob"}}}
	s := newSite(t, o)
	ann := s.signedIn("ann", "s3cret")
	script := s.token(ann, "ci", "viewer")
	full := s.token(ann, "deploy", "operator", "payload", "true")
	bearer := func(secret string) []string { return []string{"Authorization", "Bearer " + secret} }
	s.shows(browser(t), "ann (token ci) by token as viewer", bearer(script)...)
	s.shows(browser(t), "ann (token deploy) by token as operator with payloads", bearer(full)...)
	s.shows(ann, "ann by basic as operator with payloads") // her session is not the token's
	if _, text := s.get(ann, "/tokens"); secretToken.MatchString(text) {
		t.Error("the page shows the secret again")
	}
	kept, err := s.store.Tokens(t.Context())
	if err != nil || len(kept) != 2 || strings.Contains(string(kept[0].Hash[:]), script) {
		t.Errorf("%d tokens are stored, %v", len(kept), err)
	}

	s.start(o) // after a restart
	s.shows(browser(t), "ann (token ci) by token as viewer", bearer(script)...)

	o.Roles = auth.Roles{Viewer: []string{"ann"}, Payload: []string{"bob"}}
	s.start(o) // she may do less now
	s.shows(browser(t), "ann (token deploy) by token as viewer", bearer(full)...)

	if err := os.WriteFile(path, []byte(htpasswd(t, "ann", "another password")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.clock.pass(2 * time.Second)
	s.shows(browser(t), "ann (token ci) by token as viewer", bearer(script)...)
	if err := os.WriteFile(path, []byte(htpasswd(t, "bob", "hunter2")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.clock.pass(2 * time.Second)
	s.shows(browser(t), "The owner of the API token may not use this dashboard any more.", bearer(script)...)
}

func TestTokensEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret", "bob", "hunter2", "eve", "x"), Roles: auth.Roles{Admin: []string{"ann"}}})
	ann, bob, eve := s.signedIn("ann", "s3cret"), s.signedIn("bob", "hunter2"), s.signedIn("eve", "x")
	secret := s.token(bob, "ci", "viewer")
	const gone = "The API token is unknown, expired or revoked."
	revoke := func(c *http.Client) (int, string) {
		kept, err := s.store.Tokens(t.Context())
		if err != nil || len(kept) != 1 {
			t.Fatalf("%d tokens, %v", len(kept), err)
		}
		return s.post(c, "/tokens/revoke", "id", strconv.FormatInt(kept[0].ID, 10))
	}
	if status, text := revoke(eve); status != http.StatusNotFound {
		t.Errorf("a stranger revokes the token: %d %s", status, text)
	}
	if _, text := s.get(eve, "/tokens"); text != "Tokens:" {
		t.Errorf("a stranger sees %q", text)
	}
	if _, text := s.get(ann, "/tokens"); text != "Tokens:  [ci of bob]" {
		t.Errorf("the admin sees %q", text)
	}
	revoke(ann)
	s.shows(browser(t), gone, "Authorization", "Bearer "+secret)
	short := s.token(bob, "short", "viewer")
	s.clock.pass(31 * 24 * time.Hour)
	s.shows(browser(t), gone, "Authorization", "Bearer "+short)
	s.shows(browser(t), gone, "Authorization", "Bearer umbel_")
	s.shows(browser(t), gone, "Authorization", "Bearer "+secret[:len(secret)-1])
	want := []string{
		"login  ann", "login  bob", "login  eve", "create token  bob", "revoke token  ann", "login refused", "create token  bob", "login refused",
		"login refused", "login refused",
	}
	if diff := cmp.Diff(want, s.log.said()); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
}

// TestTokensOfProvidersFollowTheirOwners has a user lose a group, which Umbel learns when she signs in again.
func TestTokensOfProvidersFollowTheirOwners(t *testing.T) {
	t.Parallel()
	s, p := newProviderSite(t, auth.KindOIDC, func(o *auth.Options) {
		o.Roles = auth.Roles{Viewer: []string{"*@example.com"}, Operator: []string{"group:ops"}}
	})
	ann := browser(t)
	s.get(ann, "/login/main")
	const tooLong = "Tokens: Your tokens are valid for at most 90 days, since Umbel does not learn when you may no longer sign in."
	if _, got := s.post(ann, "/tokens", "name", "x", "role", "viewer", "days", "91"); !strings.HasPrefix(got, tooLong) {
		t.Errorf("a token for 91 days: %q", got)
	}
	bearer := []string{"Authorization", "Bearer " + s.token(ann, "ci", "operator")}
	s.shows(browser(t), "ann@example.com (token ci) by token as operator", bearer...)
	p.Claims = map[string]any{"groups": []string{}}
	ended := s.Ended()
	s.get(browser(t), "/login/main")
	s.shows(browser(t), "ann@example.com (token ci) by token as viewer", bearer...)
	select {
	case <-ended:
	default:
		t.Error("nobody is told that rights have ended")
	}
	kept, err := s.store.Tokens(t.Context())
	if err != nil || len(kept) != 1 || strings.Contains(kept[0].Identity, "ops") {
		t.Errorf("stored tokens: %v, %v", kept, err)
	}
}

// TestEndsAreTold wants those who hold something open to be told of each way to lose access.
func TestEndsAreTold(t *testing.T) {
	t.Parallel()
	path := passwordFile(t, "ann", "s3cret", "bob", "hunter2")
	s := newSite(t, auth.Options{HtpasswdFile: path})
	ann := s.signedIn("ann", "s3cret")
	s.token(ann, "ci", "viewer")
	for _, end := range []struct {
		how string
		do  func()
	}{
		{"revoke token", func() { s.post(ann, "/tokens/revoke", "id", "1") }},
		{"sign out everywhere", func() { s.post(s.signedIn("ann", "s3cret"), "/logout/everywhere") }},
		{"sign out", func() { s.post(s.signedIn("bob", "hunter2"), "/logout") }},
		{"other passwords", func() {
			if err := os.WriteFile(path, []byte(htpasswd(t, "bob", "other word")), 0o600); err != nil {
				t.Fatal(err)
			}
			s.clock.pass(time.Minute)
			s.get(browser(t), "/", "Authorization", "Basic Ym9iOm90aGVyIHdvcmQ=")
		}},
	} {
		ended := s.Ended()
		end.do()
		select {
		case <-ended:
		default:
			t.Errorf("%s: nobody is told", end.how)
		}
	}
}

func TestTokensAreNotGuessed(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret")})
	for i := range 20 {
		status, _ := s.get(browser(t), "/", "Authorization", "Bearer umbel_"+strconv.Itoa(i))
		want := http.StatusUnauthorized
		if i >= 10 {
			want = http.StatusTooManyRequests
		}
		if status != want {
			t.Errorf("guess %d = %d, want %d", i, status, want)
		}
	}
}

func TestTokensAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Options{HtpasswdFile: passwordFile(t, "ann", "s3cret"), Roles: auth.Roles{Viewer: []string{"ann"}, Payload: []string{"bob"}}})
	ann := s.signedIn("ann", "s3cret")
	for _, test := range []struct {
		want   string
		fields []string
	}{
		{"Tokens: A token can have no higher role than you.", []string{"name", "x", "role", "admin", "days", "1"}},
		{"Tokens: A role is viewer, operator or admin.", []string{"name", "x", "role", "root", "days", "1"}},
		{"Tokens: A token needs a name that says what it is for.", []string{"name", " ", "role", "viewer", "days", "1"}},
		{"Tokens: The name of a token has at most 100 bytes", []string{"name", strings.Repeat("x", 101), "role", "viewer", "days", "1"}},
		{"Tokens: A token is valid for 1 to 3,660 days.", []string{"name", "x", "role", "viewer", "days", "0"}},
		{"Tokens: A token is valid for 1 to 3,660 days.", []string{"name", "x", "role", "viewer", "days", "9999999"}},
		{"Tokens: A token is valid for 1 to 3,660 days.", []string{"name", "x", "role", "viewer"}},
	} {
		if _, got := s.post(ann, "/tokens", test.fields...); !strings.HasPrefix(got, test.want) {
			t.Errorf("%q: %q, want %q", test.fields, got, test.want)
		}
	}
	secret := s.token(ann, "ci", "viewer", "payload", "true") // which she may not see
	s.shows(browser(t), "ann (token ci) by token as viewer", "Authorization", "Bearer "+secret)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.URL+"/tokens", strings.NewReader("name=x&role=viewer&days=1"))
	if _, got := s.do(browser(t), r, "Content-Type", "application/x-www-form-urlencoded", "Authorization", "Bearer "+secret); !strings.HasPrefix(got, "Tokens: A token cannot make tokens.") {
		t.Errorf("with a token: %q", got)
	}
	for range 49 {
		s.token(ann, "more", "viewer")
	}
	if _, got := s.post(ann, "/tokens", "name", "x", "role", "viewer", "days", "1"); !strings.HasPrefix(got, "Tokens: You have 50 tokens already: revoke one first.") {
		t.Errorf("one too many: %q", got)
	}
}
