package web_test

import (
	"context"
	"encoding/base64"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/web/auth"
)

// otherSites are the headers that browsers send for pages of other sites, with and without those that tell.
func otherSites() map[string]http.Header {
	return map[string]http.Header{
		"cross-site":             {"Sec-Fetch-Site": {"cross-site"}},
		"same-site":              {"Sec-Fetch-Site": {"same-site"}},
		"cross-site with origin": {"Sec-Fetch-Site": {"cross-site"}, "Origin": {"https://attacker.example"}},
		"cross-site navigation":  {"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"}, "Origin": {"null"}},
		"old browser":            {"Origin": {"https://attacker.example"}},
		"other port":             {"Origin": {"http://example.com:8080"}},
		"sandboxed frame":        {"Origin": {"null"}},
	}
}

// Credentials that a browser or a proxy adds by itself are of no use to other sites.
func TestOtherSitesChangeNothingByAmbientCredentials(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, "")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, a := range guardedAddresses(t, h) {
		if slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, a.method) {
			continue
		}
		for name, site := range otherSites() {
			r := httptest.NewRequestWithContext(gone, a.method, a.path(), nil)
			r.Header = everyAudience()[auth.Everything]
			maps.Copy(r.Header, site)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "Cross-site") {
				t.Errorf("%s by %s: %d, want 403", a, name, w.Code)
			}
		}
	}
}

func TestOtherSitesUseNeitherSessionsNorPasswords(t *testing.T) {
	t.Parallel()
	h := newSignIn(t, auth.Options{})
	credentials := map[string]string{
		"Cookie":        signIn(t, h, "ann", "s3cret"),
		"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:s3cret")),
	}
	const form = "name=mine&q=state%3Afailure"
	for key, value := range credentials {
		for name, site := range otherSites() {
			header := []string{key, value, "Content-Type", formType}
			for k, v := range site {
				header = append(header, k, v[0])
			}
			if w := request(t, h, http.MethodPost, "/ops/views", form, header...); w.Code != http.StatusForbidden {
				t.Errorf("%s by %s: %d, want 403", key, name, w.Code)
			}
		}
		for name, header := range map[string][]string{
			"own page":    {"Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"},
			"address bar": {"Sec-Fetch-Site", "none"},
			"own, old":    {"Origin", "http://example.com"},
			"program":     nil,
		} {
			header = append([]string{key, value, "Content-Type", formType}, header...)
			if w := request(t, h, http.MethodPost, "/ops/views", form, header...); w.Code == http.StatusForbidden || w.Code == http.StatusUnauthorized {
				t.Errorf("%s by %s: %d", key, name, w.Code)
			}
		}
	}
}

func TestSocketsOfOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	srv := serveSockets(t, newGuarded(t, ""))
	for name, site := range otherSites() {
		header := everyAudience()[auth.Everything]
		maps.Copy(header, site)
		conn, resp, err := websocket.Dial(t.Context(), srv.URL+"/ws?topic=/tasks", &websocket.DialOptions{HTTPHeader: header})
		if err == nil {
			_ = conn.CloseNow()
		}
		if resp == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %v, want 403", name, err)
		}
	}
}

// However the address of a route is spelled, nobody gets to it who may not take its action.
func TestSpellingsOfAddressesLeadAroundNoAction(t *testing.T) {
	t.Parallel()
	h := newGuarded(t, "/ops")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	spell := []func(path string) string{
		func(p string) string { return p },
		func(p string) string { return "/ops" + p },
		func(p string) string { return "/ops/ops" + p },
		func(p string) string { return "/" + p },
		func(p string) string { return "/ops/" + p },
		func(p string) string { return "//ops" + p },
		func(p string) string { return "/ops/." + p },
		func(p string) string { return "/ops/%2e" + p },
		func(p string) string { return "/ops/assets/.." + p },
		func(p string) string { return "/ops/assets/%2e%2e" + p },
		func(p string) string { return "/ops/assets/..%2f" + p[1:] },
		func(p string) string { return "/ops/login/.." + p },
		func(p string) string { return "/assets/../ops" + p },
		func(p string) string { return "/ops%2f" + p[1:] },
		func(p string) string { return "/%6fps" + p },
		func(p string) string { return "/OPS" + p },
		func(p string) string { return "/ops" + p + "/" },
		func(p string) string { return "/ops" + p + "//" },
		func(p string) string { return "/ops" + p + ";/healthz" },
		func(p string) string { return "/ops;x" + p },
		func(p string) string { return "/ops" + p + "%00" },
		func(p string) string { return "/ops" + p + "?x=/assets/" },
		func(p string) string { return "/ops/" + strings.ReplaceAll(p[1:], "/", "%2F") },
		func(p string) string { return "/ops/" + strings.ReplaceAll(p[1:], "/", "//") },
		func(p string) string { return "/ops" + strings.ToUpper(p) },
		func(p string) string { return `/ops\` + p[1:] },
	}
	for _, a := range guardedAddresses(t, h) {
		if a.action == auth.Open {
			continue
		}
		for audience, header := range everyAudience() {
			if audience.Allows(a.action) {
				continue
			}
			for _, f := range spell {
				target := f(a.path())
				r := httptest.NewRequestWithContext(gone, a.method, target, nil)
				r.Header = header.Clone()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				switch w.Code {
				case http.StatusUnauthorized, http.StatusForbidden, http.StatusPermanentRedirect: // to the usual spelling
				case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusBadRequest, http.StatusServiceUnavailable:
					// Whoever is signed in may learn that a page does not exist, and static files are everybody's.
					if audience.Role == "" && !strings.Contains(target, "assets") {
						t.Errorf("%s %s of nobody: %d", a.method, target, w.Code)
					}
				default:
					t.Errorf("%s %s, which needs %s, as %v: %d", a.method, target, a.action, audience, w.Code)
				}
			}
		}
	}
}
