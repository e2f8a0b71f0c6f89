package main_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testprovider"
)

// The users of Flower's basic_auth sign in with their passwords, and nobody else does.
func TestFlowerBasicAuth(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "flowerconfig.py")
	if err := os.WriteFile(file, []byte("basic_auth = ['ann:se,\"cret', 'bob:word']\nurl_prefix = 'ops'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, nil, "-b", "redis://127.0.0.1:1/0", "flower", "--conf="+file, "--debug")
	for name, test := range map[string]struct {
		user, password string
		want           int
	}{
		"nobody": {want: http.StatusUnauthorized}, "wrong": {"ann", "word", http.StatusUnauthorized},
		"ann": {"ann", `se,"cret`, http.StatusOK}, "bob": {"bob", "word", http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"api/v1/overview", nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.user != "" {
			req.SetBasicAuth(test.user, test.password)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != test.want {
			t.Errorf("%s: status %d, want %d", name, res.StatusCode, test.want)
		}
	}
}

// Users sign in through a provider that the options of Flower name, and only those whom auth lists.
func TestFlowerSignInThroughProvider(t *testing.T) {
	t.Parallel()
	for class, test := range map[string]struct{ name, issuer string }{
		"OktaLoginHandler":   {"okta", "FLOWER_OAUTH2_OKTA_BASE_URL"},
		"GitLabLoginHandler": {"gitlab", "FLOWER_GITLAB_OAUTH_DOMAIN"},
		"GithubLoginHandler": {"github", "FLOWER_GITHUB_OAUTH_DOMAIN"},
		// Flower has no option for another address of Google.
		"GoogleAuth2LoginHandler": {"google", "UMBEL_ISSUER"},
	} {
		for allowed, want := range map[string]int{".*@example.com": http.StatusOK, "bob@example.com": http.StatusUnauthorized} {
			t.Run(class+" "+allowed, func(t *testing.T) {
				t.Parallel()
				p := testprovider.New(t, time.Now)
				p.API = map[string]any{
					"/user":        map[string]any{"login": "ann", "id": 1},
					"/user/emails": []any{map[string]any{"email": "ann@example.com", "primary": true, "verified": true}},
				}
				var d *dashboard
				registered := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // as a proxy would
					http.Redirect(w, r, d.url+"login?"+r.URL.RawQuery, http.StatusFound)
				}))
				defer registered.Close()
				d = start(t, []string{test.issuer + "=" + p.URL(), "FLOWER_OAUTH2_KEY=umbel"}, "flower", "--broker=redis://127.0.0.1:1/0",
					"--auth_provider=flower.views.auth."+class, "--auth="+allowed, "--oauth2_secret=client secret",
					"--oauth2_redirect_uri="+registered.URL+"/login")
				jar, err := cookiejar.New(nil)
				if err != nil {
					t.Fatal(err)
				}
				browser := &http.Client{Jar: jar, Timeout: timeout}
				var status int
				for _, path := range []string{"login/" + test.name, "api/v1/overview"} {
					r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+path, nil)
					if err != nil {
						t.Fatal(err)
					}
					response, err := browser.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					_ = response.Body.Close()
					status = response.StatusCode
				}
				if status != want {
					t.Errorf("status %d, want %d", status, want)
				}
				if p.Refused != "" {
					t.Error(p.Refused)
				}
			})
		}
	}
}

// The page to sign in leads to every provider of a file.
func TestSeveralProviders(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "providers.json")
	list := `[{"kind": "google", "client_id": "a", "client_secret": "b"},
		{"kind": "okta", "name": "staff", "label": "Staff", "issuer": "https://id.example", "client_id": "a", "client_secret": "b"}]`
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, nil, "demo", "--providers-file", file, "--allow", "*@example.com")
	_, page := d.fetch(t, "login")
	for _, link := range []string{`/login/google`, `/login/staff`, "Staff"} {
		if !strings.Contains(string(page), link) {
			t.Errorf("the page to sign in lacks %s", link)
		}
	}
}
