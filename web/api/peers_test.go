package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/web/api"
)

func TestPeersSayWhoAsks(t *testing.T) {
	t.Parallel()
	f := open(t)
	for want, p := range map[string]*peers.Peers{
		"read_only": nil,
		"off":       peers.New(peers.Options{Broker: inproc.New(inproc.Options{}), Off: "It is off."}),
		"joining":   peers.New(peers.Options{Broker: inproc.New(inproc.Options{}), Host: "watch-1"}),
	} {
		w := httptest.NewRecorder()
		newAPI(api.Options{Backend: f.back, Peers: p}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/peers", nil))
		var got struct {
			State string
			Asks  bool
			Items []api.Peer
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK {
			t.Fatalf("peers answered %d, %v: %s", w.Code, err, w.Body)
		}
		if got.State != want || got.Asks != (want == "off") || len(got.Items) != 0 {
			t.Errorf("peers = %+v, want state %s", got, want)
		}
	}
}
