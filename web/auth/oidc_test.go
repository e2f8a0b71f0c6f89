package auth_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testprovider"
	"github.com/umbelhq/umbel/web/auth"
)

// newProviderSite is a site at which users sign in through a double of a provider.
func newProviderSite(t *testing.T, kind string, change func(o *auth.Options)) (*site, *testprovider.Provider) {
	t.Helper()
	s := &site{T: t, store: newStore(t), clock: &clock{now: time.Now()}, log: new(auditRecords)}
	p := testprovider.New(t, s.clock.Now)
	o := auth.Options{
		Providers: []auth.Provider{{Kind: kind, Name: "main", Label: "Example", Issuer: p.URL(), ClientID: "umbel", ClientSecret: "client secret"}},
		Allow:     []string{"*@example.com"}, Client: &http.Client{Transport: http.DefaultTransport},
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	if change != nil {
		change(&o)
	}
	s.start(o)
	return s, p
}

func TestUsersSignInAtAProvider(t *testing.T) {
	t.Parallel()
	s, _ := newProviderSite(t, auth.KindOIDC, func(o *auth.Options) {
		o.Roles = auth.Roles{Operator: []string{"group:ops"}, Admin: []string{"group:admins"}}
	})
	c := browser(t)
	if _, got := s.get(c, "/login"); got != "Sign in:  [Example]" {
		t.Errorf("the page to sign in: %q", got)
	}
	if status, got := s.get(c, "/login/main?next=/tokens"); status != http.StatusOK || got != "Tokens:" {
		t.Errorf("after signing in: %d %q, want the page asked for", status, got)
	}
	s.shows(c, "ann@example.com by oidc as operator with payloads")
	if diff := cmp.Diff([]string{"login  ann@example.com"}, s.log.said()); diff != "" {
		t.Errorf("audit log (-want +got):\n%s", diff)
	}
	s.post(c, "/logout")
	s.shows(c, nobody)
	s.clock.pass(time.Hour)
	s.get(c, "/login/main")
	s.shows(c, "ann@example.com by oidc as operator with payloads")
}

// TestProvidersAreNotBelievedBlindly has a provider, or somebody between it and the browser, answer in hostile ways.
func TestProvidersAreNotBelievedBlindly(t *testing.T) {
	t.Parallel()
	const unconfirmed = "Sign in: Example could not confirm who you are; the log says why. [Example]"
	for name, test := range map[string]struct {
		change func(p *testprovider.Provider)
		want   string
	}{
		"good":             {func(*testprovider.Provider) {}, ""},
		"verified as text": {func(p *testprovider.Provider) { p.Claims = map[string]any{"email_verified": "true"} }, ""},
		"several audiences": {func(p *testprovider.Provider) {
			p.Claims = map[string]any{"aud": []string{"umbel", "b"}, "azp": "umbel"}
		}, ""},
		"other case": {func(p *testprovider.Provider) { p.Claims = map[string]any{"email": "Ann@EXAMPLE.com"} }, ""},
		"userinfo": {func(p *testprovider.Provider) {
			p.Claims = map[string]any{"email": nil}
			p.Info = map[string]any{"sub": "1", "email": "ann@example.com", "email_verified": true}
		}, ""},
		"wrong nonce":       {func(p *testprovider.Provider) { p.Claims = map[string]any{"nonce": "x"} }, unconfirmed},
		"no nonce":          {func(p *testprovider.Provider) { p.Claims = map[string]any{"nonce": nil} }, unconfirmed},
		"other audience":    {func(p *testprovider.Provider) { p.Claims = map[string]any{"aud": "other"} }, unconfirmed},
		"other party":       {func(p *testprovider.Provider) { p.Claims = map[string]any{"azp": "other"} }, unconfirmed},
		"other issuer":      {func(p *testprovider.Provider) { p.Claims = map[string]any{"iss": "https://attacker.example"} }, unconfirmed},
		"expired":           {func(p *testprovider.Provider) { p.Claims = map[string]any{"exp": time.Now().Add(-time.Hour).Unix()} }, unconfirmed},
		"alg none":          {func(p *testprovider.Provider) { p.Header = map[string]any{"alg": "none"} }, unconfirmed},
		"alg HS256":         {func(p *testprovider.Provider) { p.Header = map[string]any{"alg": "HS256"} }, unconfirmed},
		"key of a stranger": {func(p *testprovider.Provider) { p.Header = map[string]any{"kid": "stranger"} }, unconfirmed},
		"unverified mail":   {func(p *testprovider.Provider) { p.Claims = map[string]any{"email_verified": false} }, unconfirmed},
		"mail of no words":  {func(p *testprovider.Provider) { p.Claims = map[string]any{"email_verified": nil} }, unconfirmed},
		"no mail": {func(p *testprovider.Provider) {
			p.Claims = map[string]any{"email": nil}
			p.Info = map[string]any{"sub": "1"}
		}, unconfirmed},
		"userinfo of another": {func(p *testprovider.Provider) {
			p.Claims = map[string]any{"email": nil}
			p.Info = map[string]any{"sub": "2", "email": "ann@example.com", "email_verified": true}
		}, unconfirmed},
		"userinfo, unverified": {func(p *testprovider.Provider) {
			p.Claims = map[string]any{"email": nil}
			p.Info = map[string]any{"sub": "1", "email": "ann@example.com"}
		}, unconfirmed},
		"hash of another token": {func(p *testprovider.Provider) { p.Claims = map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"} }, unconfirmed},
		"other domain":          {func(p *testprovider.Provider) { p.Claims = map[string]any{"email": "me@example.com.attacker.com"} }, "Sign in: me@example.com.attacker.com may not use this dashboard. [Example]"},
		"two lines":             {func(p *testprovider.Provider) { p.Claims = map[string]any{"email": "eve@attacker.com\n@example.com"} }, unconfirmed},
		"name of a group":       {func(p *testprovider.Provider) { p.Claims = map[string]any{"email": "group:ops@example.com"} }, unconfirmed},
		"other code":            {func(p *testprovider.Provider) { p.Answer = func(v url.Values) { v.Set("code", "stolen") } }, unconfirmed},
		"refused by the user": {func(p *testprovider.Provider) {
			p.Answer = func(v url.Values) { v.Del("code"); v.Set("error", "access_denied") }
		}, "Sign in: Example refused: access_denied. [Example]"},
		"other provider answers": {func(p *testprovider.Provider) {
			p.Answer = func(v url.Values) { v.Set("iss", "https://attacker.example") }
		}, "Sign in: Another provider answered than the one that was asked. [Example]"},
		"other state": {func(p *testprovider.Provider) {
			p.Answer = func(v url.Values) { v.Set("state", strings.Repeat("A", 26)) }
		}, "Sign in: This sign-in was not begun in this browser, or it took too long. Try again. [Example]"},
		"changed state": {func(p *testprovider.Provider) {
			p.Answer = func(v url.Values) { v.Set("state", v.Get("state")[:8]+strings.Repeat("A", 18)) }
		}, "Sign in: This sign-in was not begun in this browser, or it took too long. Try again. [Example]"},
		"no state": {func(p *testprovider.Provider) { p.Answer = func(v url.Values) { v.Del("state") } }, "Sign in: This sign-in was not begun in this browser, or it took too long. Try again. [Example]"},
		"down":     {func(p *testprovider.Provider) { p.Down = true }, "Sign in: Example cannot be reached. Try again; the log says why. [Example]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := newProviderSite(t, auth.KindOIDC, nil)
			test.change(p)
			c := browser(t)
			_, got := s.get(c, "/login/main")
			if test.want == "" {
				if !strings.HasPrefix(strings.ToLower(got), "ann@example.com by oidc as admin") {
					t.Errorf("got %q, want to be signed in", got)
				}
				return
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			s.shows(c, nobody)
			if said := s.log.said(); name != "down" && (len(said) != 1 || !strings.HasPrefix(said[0], "login refused")) {
				t.Errorf("audit log: %q, want one refusal", said)
			}
		})
	}
}

// TestSignInsAreBoundToTheBrowser takes the answer for one browser to another: its user would be signed in as somebody else.
func TestSignInsAreBoundToTheBrowser(t *testing.T) {
	t.Parallel()
	s, _ := newProviderSite(t, auth.KindOIDC, nil)
	attacker, victim := browser(t), browser(t)
	var answer string
	attacker.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Query().Has("code") {
			answer = r.URL.RequestURI()
			return http.ErrUseLastResponse
		}
		return nil
	}
	s.get(attacker, "/login/main")
	if answer == "" {
		t.Fatal("the provider gave no code")
	}
	if _, got := s.get(victim, answer); got != "Sign in: This sign-in was not begun in this browser, or it took too long. Try again. [Example]" {
		t.Errorf("in another browser: %q", got)
	}
	s.shows(victim, nobody)
	if _, got := s.get(attacker, answer); got != "ann@example.com by oidc as admin with payloads" {
		t.Errorf("in the browser itself: %q", got)
	}
	s.post(attacker, "/logout")
	if _, got := s.get(attacker, answer); got != "Sign in: This sign-in was not begun in this browser, or it took too long. Try again. [Example]" {
		t.Errorf("a second time: %q", got)
	}
}

func TestSignInsTakeNoMoreThanTenMinutes(t *testing.T) {
	t.Parallel()
	s, p := newProviderSite(t, auth.KindOIDC, nil)
	p.Answer = func(url.Values) { s.clock.pass(11 * time.Minute) }
	if _, got := s.get(browser(t), "/login/main"); !strings.HasPrefix(got, "Sign in: This sign-in was not begun in this browser, or it took too long.") {
		t.Errorf("got %q", got)
	}
}

// TestTwoTabsSignInAtOnce begins a second sign-in before the first one ends.
func TestTwoTabsSignInAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := newProviderSite(t, auth.KindOIDC, nil)
	c := browser(t)
	follow := c.CheckRedirect
	var answers []string
	c.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Query().Has("code") {
			answers = append(answers, r.URL.RequestURI())
			return http.ErrUseLastResponse
		}
		return nil
	}
	s.get(c, "/login/main")
	s.get(c, "/login/main")
	c.CheckRedirect = follow
	for _, answer := range answers {
		if _, got := s.get(c, answer); got != "ann@example.com by oidc as admin with payloads" {
			t.Errorf("got %q", got)
		}
	}
}

// TestOptionsApplyToSessionsAtOnce narrows who may sign in while somebody is.
func TestOptionsApplyToSessionsAtOnce(t *testing.T) {
	t.Parallel()
	s, p := newProviderSite(t, auth.KindOIDC, nil)
	c := browser(t)
	s.get(c, "/login/main")
	secret := sessionOf(s, c)
	o := auth.Options{
		Providers: []auth.Provider{{Name: "main", Issuer: p.URL(), ClientID: "umbel", ClientSecret: "client secret"}},
		Allow:     []string{"bob@example.com"},
	}
	s.start(o)
	s.shows(browser(t), nobody, "Cookie", s.cookie(secret))
	o.Allow, o.Roles.Viewer = []string{"*@example.com"}, []string{"ann@example.com"}
	s.start(o)
	s.shows(browser(t), "ann@example.com by oidc as viewer with payloads", "Cookie", s.cookie(secret))
}

func TestGroupsAreRequired(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind   string
		groups []string
		change func(p *testprovider.Provider)
		in     bool
	}{
		"member":            {auth.KindKeycloak, []string{"web", "ops"}, func(*testprovider.Provider) {}, true},
		"no member":         {auth.KindKeycloak, []string{"web", "op", "opsx"}, func(*testprovider.Provider) {}, false},
		"claim of one text": {auth.KindOkta, []string{"ops"}, func(p *testprovider.Provider) { p.Claims = map[string]any{"groups": "ops"} }, true},
		"claim of numbers":  {auth.KindOkta, []string{"ops"}, func(p *testprovider.Provider) { p.Claims = map[string]any{"groups": []int{1}} }, false},
		"groups in userinfo": {auth.KindOkta, []string{"ops"}, func(p *testprovider.Provider) {
			p.Claims = map[string]any{"groups": nil}
			p.Info = map[string]any{"sub": "1", "groups": []string{"ops"}}
		}, true},
		"no groups": {auth.KindOkta, []string{"ops"}, func(p *testprovider.Provider) {
			p.Claims = map[string]any{"groups": nil}
			p.Info = map[string]any{"sub": "1"}
		}, false},
		"GitLab, member":      {auth.KindGitLab, []string{"a/ops"}, gitlab("/api/v4/groups?page=1&level=20", "a/ops"), true},
		"GitLab, second page": {auth.KindGitLab, []string{"a/ops"}, gitlab("/api/v4/groups?page=2&level=20", "a/ops"), true},
		"GitLab, other level": {auth.KindGitLab, []string{"a/ops"}, gitlab("/api/v4/groups?page=1&level=10", "a/ops"), false},
		"GitLab, other group": {auth.KindGitLab, []string{"a/ops"}, gitlab("/api/v4/groups?page=1&level=20", "b/a/ops"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := newProviderSite(t, auth.KindOIDC, func(o *auth.Options) {
				o.Providers[0].Kind, o.Providers[0].Groups, o.Allow = test.kind, test.groups, nil
				if test.kind == auth.KindKeycloak {
					o.Providers[0].Kind = auth.KindOIDC // whose issuer the double is not
				}
			})
			test.change(p)
			if _, got := s.get(browser(t), "/login/main"); strings.HasPrefix(got, "ann@example.com by oidc as admin") != test.in {
				t.Errorf("got %q, want to be in: %t", got, test.in)
			}
		})
	}
}

// gitlab has GitLab answer at one address that the user is in a group, and in none at others.
func gitlab(address, group string) func(p *testprovider.Provider) {
	return func(p *testprovider.Provider) {
		p.API = map[string]any{"/api/v4/groups?page=1&level=20": []any{}}
		p.API[address] = []any{map[string]any{"full_path": group}}
	}
}

func TestProvidersAreChecked(t *testing.T) {
	t.Parallel()
	good := auth.Provider{Issuer: "https://id.example.com", ClientID: "umbel", ClientSecret: "x"}
	with := func(change func(p *auth.Provider)) auth.Provider {
		p := good
		change(&p)
		return p
	}
	for _, test := range []struct {
		provider auth.Provider
		allow    []string
		roles    auth.Roles
		redirect string
		want     string
	}{
		{good, []string{"*@example.com"}, auth.Roles{}, "https://ops.example.com/login", ""},
		{good, nil, auth.Roles{Viewer: []string{"ann@example.com"}}, "", ""},
		{good, nil, auth.Roles{Default: auth.Viewer}, "", ""},
		{with(func(p *auth.Provider) { p.Groups = []string{"ops"} }), nil, auth.Roles{}, "", ""},
		{good, nil, auth.Roles{}, "", "anybody with an account at OpenID Connect could sign in"},
		{auth.Provider{Kind: auth.KindGoogle, ClientID: "a", ClientSecret: "b"}, nil, auth.Roles{}, "", "anybody with an account at Google could sign in"},
		{auth.Provider{Kind: auth.KindGitHub, ClientID: "a", ClientSecret: "b"}, nil, auth.Roles{}, "", "anybody with an account at GitHub could sign in"},
		{auth.Provider{Kind: auth.KindOkta, ClientID: "a", ClientSecret: "b"}, []string{"a@b.c"}, auth.Roles{}, "", "Okta needs the address of its issuer"},
		{with(func(p *auth.Provider) { p.Kind = auth.KindKeycloak }), []string{"a@b.c"}, auth.Roles{}, "", "does not end in /realms/"},
		{with(func(p *auth.Provider) { p.Kind = "facebook" }), []string{"a@b.c"}, auth.Roles{}, "", "the kind of provider"},
		{with(func(p *auth.Provider) { p.Issuer = "http://id.example.com" }), []string{"a@b.c"}, auth.Roles{}, "", "must be reached by https"},
		{with(func(p *auth.Provider) { p.Issuer = "id.example.com" }), []string{"a@b.c"}, auth.Roles{}, "", "is not of the form https://host/path"},
		{with(func(p *auth.Provider) { p.Name = "a b" }), []string{"a@b.c"}, auth.Roles{}, "", "the name of the provider"},
		{with(func(p *auth.Provider) { p.ClientSecret = "" }), []string{"a@b.c"}, auth.Roles{}, "", "needs the ID and the secret of a client"},
		{good, []string{"*"}, auth.Roles{}, "", "the list of allowed addresses"},
		{good, []string{"a@b.c"}, auth.Roles{}, "https://ops.example.com/elsewhere", "the redirect URI"},
	} {
		_, err := auth.New(t.Context(), auth.Options{
			Store: noStore{}, Providers: []auth.Provider{test.provider}, Allow: test.allow, Roles: test.roles, RedirectURI: test.redirect,
		})
		if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: error %v, want %q", test.provider, err, test.want)
		}
	}
}

// TestRedirectsLeadToTheProvider checks what providers need to be told.
func TestRedirectsLeadToTheProvider(t *testing.T) {
	t.Parallel()
	s, p := newProviderSite(t, auth.KindOIDC, nil)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://umbel.example.com/login/main", http.NoBody)
	r.RemoteAddr = "127.0.0.1:5"
	r.Header.Set("X-Forwarded-Proto", "https")
	w := httptest.NewRecorder()
	s.ServeProvider(w, r, textPages{}, "main")
	u, err := url.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusSeeOther || !strings.HasPrefix(u.String(), p.URL()+"/authorize?") {
		t.Fatalf("got %d to %v, %v", w.Code, u, err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"client_id": "umbel", "response_type": "code", "scope": "openid email profile", "redirect_uri": "https://umbel.example.com/login",
		"code_challenge_method": "S256",
	} {
		if got := q.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if len(q.Get("state")) != 26 || len(q.Get("nonce")) != 26 || len(q.Get("code_challenge")) != 43 {
		t.Errorf("state, nonce and challenge are %q", q)
	}
	cookie := w.Header().Get("Set-Cookie")
	if !strings.HasPrefix(cookie, "__Host-umbel_login_") || !strings.Contains(cookie, "HttpOnly; Secure; SameSite=Lax") || strings.Contains(cookie, q.Get("nonce")) {
		t.Errorf("cookie %q", cookie)
	}
}
