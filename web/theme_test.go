package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/web"
)

func TestTheme(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Prefix: "/ops"})
	tests := map[string]struct {
		form, cookie, location string
	}{
		"dark":         {"theme=dark&return=/ops/tasks", "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/tasks"},
		"with query":   {"theme=light&return=/ops/tasks%3Fq%3Da%2526b", "theme=light; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/tasks?q=a%26b"},
		"system":       {"theme=system&return=/ops/", "theme=; Path=/ops/; Max-Age=0; HttpOnly; SameSite=Lax", "/ops/"},
		"unknown":      {"theme=<b>", "theme=; Path=/ops/; Max-Age=0; HttpOnly; SameSite=Lax", "/ops/"},
		"other site":   {"theme=dark&return=https://evil.example/ops/", "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/"},
		"other host":   {"theme=dark&return=//evil.example/ops/", "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/"},
		"other path":   {"theme=dark&return=/admin", "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/"},
		"backslash":    {`theme=dark&return=/ops/\evil.example`, "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/"},
		"dots":         {"theme=dark&return=/ops/../../evil", "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/"},
		"escaped dots": {"theme=dark&return=/ops/%252e%252E/evil", "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/"},
		"name of dots": {"theme=dark&return=/ops/tasks/a..b", "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/tasks/a..b"},
		"header split": {"theme=dark&return=/ops/%0d%0aSet-Cookie:x", "theme=dark; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax", "/ops/"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := request(t, h, http.MethodPost, "/ops/theme", tc.form, "Content-Type", "application/x-www-form-urlencoded")
			if w.Code != http.StatusSeeOther {
				t.Errorf("status = %d, want 303", w.Code)
			}
			if got := w.Header().Get("Location"); got != tc.location {
				t.Errorf("Location = %q, want %q", got, tc.location)
			}
			if got := w.Header().Get("Set-Cookie"); got != tc.cookie {
				t.Errorf("Set-Cookie = %q, want %q", got, tc.cookie)
			}
		})
	}
	if page := request(t, h, http.MethodGet, "/ops/", "", "Cookie", "theme=dark").Body.String(); !strings.Contains(page, `data-theme="dark"`) {
		t.Error("the cookie does not make the page dark")
	}
	w := request(t, h, http.MethodPost, "/ops/density", "density=compact&return=/ops/tasks", "Content-Type", "application/x-www-form-urlencoded")
	if got, want := w.Header().Get("Set-Cookie"), "density=compact; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax"; got != want {
		t.Errorf("Set-Cookie = %q, want %q", got, want)
	}
	if page := request(t, h, http.MethodGet, "/ops/tasks", "", "Cookie", "density=compact").Body.String(); !strings.Contains(page, `data-density="compact"`) {
		t.Error("the cookie does not make rows lower")
	}
	w = request(t, h, http.MethodPost, "/ops/time", "time=local&return=/ops/settings", "Content-Type", "application/x-www-form-urlencoded")
	if got, want := w.Header().Get("Set-Cookie"), "time=local; Path=/ops/; Max-Age=31536000; HttpOnly; SameSite=Lax"; got != want {
		t.Errorf("Set-Cookie = %q, want %q", got, want)
	}
	for choice, want := range map[string]bool{"local": true, "relative": true, "utc": true, "mars": false} {
		page := request(t, h, http.MethodGet, "/ops/tasks", "", "Cookie", "time="+choice).Body.String()
		if strings.Contains(page, `data-time="`+choice+`"`) != want {
			t.Errorf("the cookie %s is heeded: %v, want %v", choice, !want, want)
		}
	}
	if page := request(t, newWeb(t, web.Options{}), http.MethodPost, "/theme", "return=//evil.example/", "Content-Type", "application/x-www-form-urlencoded"); page.Header().Get("Location") != "/" {
		t.Errorf("at the root: Location = %q, want /", page.Header().Get("Location"))
	}
}
