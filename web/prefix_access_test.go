package web_test

import (
	"net/http"
	"testing"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// TestEscapedPrefixesLeadToNoOtherPage asks for pages that need more than the route that an escaped prefix looks like.
func TestEscapedPrefixesLeadToNoOtherPage(t *testing.T) {
	t.Parallel()
	for prefix, path := range map[string]string{
		"/workers/umbel": "/workers/%75mbel", "/tasks/umbel": "/tasks/umbe%6C", "/queues/x/y": "/queues/%78/y",
	} {
		o := web.Options{Prefix: prefix, Auth: doorkeeper{}, Backend: newBackend(t, state.Options{})}
		startWorkers(t, &o, nil)
		h := newWeb(t, o)
		for page, as := range map[string]string{"/outbox/audit": "viewer", "/locks": "viewer/", "/duplicates": "viewer/"} {
			plain := request(t, h, http.MethodGet, prefix+page, "", "As", as)
			if plain.Code != http.StatusForbidden {
				t.Errorf("%s as %s = %d, want 403", prefix+page, as, plain.Code)
			}
			if w := request(t, h, http.MethodGet, path+page, "", "As", as); w.Code == http.StatusOK {
				t.Errorf("%s as %s = %d %.3000s", path+page, as, w.Code, w.Body)
			}
		}
	}
}
