package live_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
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
		c := s.dial("nowhere")
		for range 2 {
			c.subscribe(t.Context())
			if got, want := c.frame(t.Context()).Error, live.ErrNoTopic.Error(); got != want {
				t.Errorf("error = %q, want %q", got, want)
			}
		}
		c.send(t.Context(), map[string]any{"op": "sub", "topic": "t"})
		if got := c.frame(t.Context()); got.Topic != "t" || got.Error != "" {
			t.Errorf("message = %+v, want a frame of t", got)
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
				c.subscribe(t.Context())
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

func TestManyTopicsOnOneSocket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		c := s.dial("none of them")
		for i := range 17 {
			c.send(t.Context(), map[string]any{"op": "sub", "topic": fmt.Sprintf("t%d", i)})
			m := c.frame(t.Context())
			if refused := m.Error != ""; refused != (i == 16) {
				t.Errorf("topic %d: message %+v", i+1, m)
			}
		}
		c.send(t.Context(), map[string]any{"op": "unsub", "topic": "t3"})
		c.send(t.Context(), map[string]any{"op": "sub", "topic": "t16"})
		if m := c.frame(t.Context()); m.Topic != "t16" || m.Error != "" {
			t.Errorf("after one was left: message %+v, want a frame of t16", m)
		}
	})
}

func TestBadRequestsEndTheSocket(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		request string
		want    websocket.StatusCode
	}{
		"not JSON":   {"hello", websocket.StatusPolicyViolation},
		"unknown op": {`{"op":"eval"}`, websocket.StatusPolicyViolation},
		"wrong type": {`{"op":"sub","topic":7}`, websocket.StatusPolicyViolation},
		"too long":   {`{"op":"sub","topic":"` + strings.Repeat("x", 1<<15) + `"}`, websocket.StatusMessageTooBig},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, live.Options{})
				c := s.dial("t")
				go func() { _ = c.conn.Write(t.Context(), websocket.MessageText, []byte(test.request)) }()
				var err error
				for err == nil {
					_, err = c.read(t.Context())
				}
				if got := websocket.CloseStatus(err); got != test.want {
					t.Errorf("close status = %v (%v), want %v", got, err, test.want)
				}
			})
		})
	}
}

func TestFloodOfRequestsIsSlowedDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		s.set("t", fragments("n", "1"))
		c := s.dial("t")
		go func() {
			for {
				if err := c.conn.Write(t.Context(), websocket.MessageText, []byte(`{"op":"sub","topic":"t"}`)); err != nil {
					return
				}
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		for {
			if _, err := c.read(ctx); err != nil {
				break
			}
		}
		if got, want := c.model.frames, 32+5*10+1; got > want {
			t.Errorf("%d frames for a flood of requests in 10 s, want at most %d", got, want)
		}
	})
}

func TestStoppingClosesSocketsAsGoingAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		c := s.dial("t")
		c.subscribe(t.Context())
		deaf := s.dial("t")
		deaf.subscribe(t.Context())
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
			t.Errorf("stopping took %v beside a deaf peer, want at most %v", got, want)
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
		if _, resp, err := s.tryDial(nil); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
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
				conn, resp, err := s.tryDial(header)
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
