package live_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/web/live"
)

func TestUnknownTopicIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		for range 2 {
			c := s.dial("nowhere")
			if got, want := c.frame(t.Context()).Error, live.ErrNoTopic.Error(); got != want {
				t.Errorf("error = %q, want %q", got, want)
			}
			if _, err := c.read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("after the error: %v, want status 1000", err)
			}
		}
	})
}

func TestFailedRenderingIsRetriedAtTheNextChange(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*source, bool){
		"error": func(s *source, on bool) {
			s.fail = nil
			if on {
				s.fail = errors.New("disk full")
			}
		},
		"panic": func(s *source, on bool) { s.panics = on },
	}
	for name, fail := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, live.Options{})
				s.set("t", fragments("n", "1"))
				c := s.dial("t")
				c.frame(t.Context())
				s.change(func() { fail(s.source, true) })
				<-time.After(time.Second)
				s.change(func() { fail(s.source, false); s.topics["t"] = live.Snapshot{Regions: fragments("n", "2")} })
				if got := c.frame(t.Context()); got.Seq != 2 || c.model.regions["n"] != "2" {
					t.Errorf("frame = %+v, want the change with seq 2", got)
				}
			})
		})
	}
}

func TestASocketThatSendsAnythingIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		c := s.dial("t")
		go func() { _ = c.conn.Write(t.Context(), websocket.MessageText, []byte("hello")) }()
		var err error
		for err == nil {
			_, err = c.read(t.Context())
		}
		if got, want := websocket.CloseStatus(err), websocket.StatusPolicyViolation; got != want {
			t.Errorf("close status = %v (%v), want %v", got, err, want)
		}
	})
}

func TestStoppingClosesSocketsAsGoingAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		c := s.dial("t")
		s.dial("t") // and never reads
		closed := make(chan error, 1)
		go func() {
			for {
				if _, err := c.read(t.Context()); err != nil {
					closed <- err
					return
				}
			}
		}()
		<-time.After(time.Second)
		s.set("t", fragments("n", "1"))
		synctest.Wait()
		start := time.Now()
		s.stop()
		if got, want := websocket.CloseStatus(<-closed), websocket.StatusGoingAway; got != want {
			t.Errorf("close status = %v, want %v", got, want)
		}
		if got, want := time.Since(start), 5*time.Second; got > want {
			t.Errorf("stopping took %v beside a peer that does not read, want at most %v", got, want)
		}
	})
}

func TestSilentPeerIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{MaxSockets: 1})
		c := s.dial("t")
		if _, err := c.read(t.Context()); err != nil { // and never again: pings go unanswered
			t.Fatal(err)
		}
		if _, resp, err := s.tryDial("http://umbel.test/ws", nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("second socket: %v, %v, want 503", resp, err)
		}
		<-time.After(46 * time.Second)
		s.dial("t")
	})
}

func TestBeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		c := s.dial("t")
		for i := range 10 {
			m, err := c.read(t.Context())
			for err == nil && m.Frame {
				m, err = c.read(t.Context())
			}
			if err != nil {
				t.Fatalf("beat %d: %v", i, err)
			}
			if got, want := m.Now, time.Now().UnixMilli(); got != want {
				t.Errorf("beat %d tells %d, want %d", i, got, want)
			}
		}
	})
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		origin string
		want   int
	}{
		"own origin":     {"http://umbel.test", http.StatusSwitchingProtocols},
		"no origin":      {"", http.StatusSwitchingProtocols},
		"allowed origin": {"https://ops.example.com", http.StatusSwitchingProtocols},
		"other scheme":   {"http://ops.example.com", http.StatusForbidden},
		"foreign origin": {"https://evil.example", http.StatusForbidden},
		"null origin":    {"null", http.StatusForbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, live.Options{Origins: []string{"https://ops.example.com"}})
				header := http.Header{}
				if test.origin != "" {
					header.Set("Origin", test.origin)
				}
				conn, resp, err := s.tryDial("http://umbel.test/ws", header)
				if err == nil {
					defer func() { _ = conn.CloseNow() }()
				}
				if resp == nil || resp.StatusCode != test.want {
					t.Errorf("response = %v, %v, want %d", resp, err, test.want)
				}
			})
		})
	}
}

func TestHubServesOnlyWhileItRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		if err := s.hub.Run(t.Context()); err == nil {
			t.Error("second Run succeeded, want an error")
		}
		c := s.dial("t")
		_ = c.conn.CloseNow()
	})
}

func TestOptionsAreValidated(t *testing.T) {
	t.Parallel()
	tests := map[string]live.Options{
		"no source":        {},
		"negative sockets": {Source: newSource(), MaxSockets: -1},
	}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := live.New(o); err == nil {
				t.Error("New succeeded, want an error")
			}
		})
	}
}
