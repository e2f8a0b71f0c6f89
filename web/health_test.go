package web_test

import (
	"net/http"
	"testing"

	"github.com/umbelhq/umbel/internal/testcluster"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

func TestHealth(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		health view.Health
		want   int
	}{
		"starting":    {view.Health{}, http.StatusServiceUnavailable},
		"broker lost": {view.Health{Ready: true}, http.StatusOK},
		"ready":       {view.Health{Ready: true, Broker: view.BrokerHealth{Connected: true}}, http.StatusOK},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newWeb(t, web.Options{Backend: &backend{Cluster: testcluster.New(t, state.Options{}), health: tc.health}})
			if got := visit(t, h, "/readyz").Code; got != tc.want {
				t.Errorf("/readyz = %d, want %d", got, tc.want)
			}
			if got := visit(t, h, "/healthz").Code; got != http.StatusOK {
				t.Errorf("/healthz = %d, want 200", got)
			}
		})
	}
}
