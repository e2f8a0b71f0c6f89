package web_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
	"github.com/umbelhq/umbel/web/auth"
)

// doorkeeper lets in who says in the header As which role to have, with a slash behind it without payloads.
type doorkeeper struct{ signInPath string }

func (doorkeeper) Authenticate(r *http.Request) (auth.Grant, error) {
	role, hidden := strings.CutSuffix(r.Header.Get("As"), "/")
	if role == "stranger" {
		return auth.Grant{}, errors.New("The password is wrong.")
	}
	if role == "" {
		return auth.Grant{}, nil
	}
	return auth.Grant{User: "ada", Method: "basic", Audience: auth.Audience{Role: auth.Role(role), Payload: !hidden}}, nil
}

func (d doorkeeper) SignInPath() string { return d.signInPath }

func (doorkeeper) Challenge() string { return `Basic realm="Umbel"` }

func TestNobodyIsLedToTheSignInPage(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops", Auth: doorkeeper{"/login"}})
	tests := map[string]struct{ method, path, location string }{
		"page":         {http.MethodGet, "/ops/tasks?q=a+b&x=%2F", "/ops/login?next=%2Fops%2Ftasks%3Fq%3Da%2Bb%26x%3D%252F"},
		"overview":     {http.MethodGet, "/ops/", "/ops/login?next=%2Fops%2F"},
		"no such page": {http.MethodGet, "/ops/nowhere", "/ops/login?next=%2Fops%2Fnowhere"},
		"form":         {http.MethodPost, "/ops/views", "/ops/login"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := request(t, h, test.method, test.path, "")
			if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != test.location {
				t.Errorf("got %d to %q, want 303 to %q", w.Code, got, test.location)
			}
		})
	}
}

func TestProgramsAreAskedForCredentials(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops", Auth: doorkeeper{"/login"}})
	for _, path := range []string{"/ops/api/v1/tasks", "/ops/ws?topic=/tasks", "/ops/metrics", "/ops/workers?json=1"} {
		for as, want := range map[string]string{"": "Sign in first.", "stranger": "The password is wrong."} {
			w := request(t, h, http.MethodGet, path, "", "As", as)
			if got := w.Header().Get("WWW-Authenticate"); w.Code != http.StatusUnauthorized || got != `Basic realm="Umbel"` {
				t.Errorf("%s: %d, challenge %q, want 401 and Basic", path, w.Code, got)
			}
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s as %q: %s, want %q", path, as, w.Body, want)
			}
		}
	}
}

func TestPagesOfNobodyTellNothingOfTheCluster(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops", Auth: doorkeeper{}, Backend: newBackend(t, state.Options{})})
	w := request(t, h, http.MethodGet, "/ops/tasks", "")
	if w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "rabbit") {
		t.Errorf("got %d %s, want 401 without the broker", w.Code, w.Body)
	}
}

func TestMetricsAreOpenIfTheyAreSaidToBe(t *testing.T) {
	t.Parallel()
	for open, want := range map[bool]int{false: http.StatusUnauthorized, true: http.StatusOK} {
		h := newWeb(t, web.Options{Auth: doorkeeper{}, OpenMetrics: open, ClosedHealth: !open})
		if got := request(t, h, http.MethodGet, "/metrics", "").Code; got != want {
			t.Errorf("open %v: /metrics = %d, want %d", open, got, want)
		}
		for _, path := range []string{"/readyz", "/healthcheck"} {
			if got := request(t, h, http.MethodGet, path, "").Code; (got == http.StatusOK) != open {
				t.Errorf("closed %v: %s = %d", !open, path, got)
			}
		}
	}
}
