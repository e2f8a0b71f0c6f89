package web_test

import (
	"net/http"
	"testing"

	"github.com/umbelhq/umbel/web"
)

func TestCrossSiteRequestsChangeNothing(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{
		Origins: []string{"https://ops.example"}, Hosts: []string{"example.com", "localhost", "127.0.0.1", "proxy.example", "*"},
	})
	tests := map[string]struct {
		header []string
		want   int
	}{
		"own form":       {[]string{"Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"}, http.StatusSeeOther},
		"no browser":     {nil, http.StatusSeeOther},
		"allowed origin": {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://ops.example"}, http.StatusSeeOther},
		"proxy's name":   {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://proxy.example"}, http.StatusSeeOther},
		"proxy's port":   {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://proxy.example:8443"}, http.StatusForbidden},
		"other local":    {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "http://localhost:3000"}, http.StatusForbidden},
		"local, port 80": {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "http://localhost"}, http.StatusForbidden},
		"foreign form":   {[]string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, http.StatusForbidden},
		"sister site":    {[]string{"Sec-Fetch-Site", "same-site", "Origin", "https://evil.example.com"}, http.StatusForbidden},
		"old browser":    {[]string{"Origin", "https://evil.example"}, http.StatusForbidden},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := append([]string{"Content-Type", "application/x-www-form-urlencoded"}, tc.header...)
			if got := request(t, h, http.MethodPost, "/theme", "theme=dark", header...).Code; got != tc.want {
				t.Errorf("status = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	some := newWeb(t, web.Options{Hosts: []string{"localhost", "127.0.0.1", "::1", "Ops.example"}})
	any := newWeb(t, web.Options{})
	tests := map[string]bool{
		"localhost": true, "localhost:5555": true, "127.0.0.1:5555": true, "[::1]:5555": true, "[::1]": true,
		"ops.example": true, "OPS.EXAMPLE.:443": true,
		"evil.example": false, "evil.example:5555": false, "localhost.evil.example": false, "127.0.0.2": false, "": false,
	}
	for host, want := range tests {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			for _, target := range []string{"/", "/api/v1/tasks", "/ws", "/healthz"} {
				if got := request(t, some, http.MethodGet, target, "", "Host", host).Code != http.StatusMisdirectedRequest; got != want {
					t.Errorf("%s: answered = %v, want %v", target, got, want)
				}
			}
			// What a client says of a proxy changes nothing.
			w := request(t, some, http.MethodGet, "/", "", "Host", host, "X-Forwarded-Host", "localhost", "Forwarded", "host=localhost")
			if got := w.Code != http.StatusMisdirectedRequest; got != want {
				t.Errorf("with forwarding headers: answered = %v, want %v", got, want)
			}
			if w := request(t, any, http.MethodGet, "/", "", "Host", host); w.Code != http.StatusOK {
				t.Errorf("without a list: status = %d, want 200", w.Code)
			}
		})
	}
}
