package live_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/web/live"
)

// greedy opens as many sockets as there are slots, from another address, all of slow topics. stop closes them.
func greedy(t *testing.T, s *server, kind string) (stop func()) {
	t.Helper()
	var clients []*client
	s.address = "greedy"
	for i := range 16 {
		c := s.dial(fmt.Sprint(kind, i))
		clients = append(clients, c)
		go func() {
			for {
				if _, err := c.read(t.Context()); err != nil {
					return
				}
			}
		}()
	}
	s.address = ""
	synctest.Wait()
	return func() {
		for _, c := range clients {
			_ = c.conn.CloseNow()
		}
		synctest.Wait()
	}
}

func TestSlowTopicsOfOneAddressDelayNoOther(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"slow", "endless"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, live.Options{})
				s.set("t", fragments("n", "0"))
				for range 3 {
					greedy(t, s, kind)
				}
				c := s.dial("t")
				start := time.Now()
				c.frame(t.Context())
				if took := time.Since(start); took > 0 {
					t.Errorf("the first frame took %v beside slow topics, want none", took)
				}
				for i := range 20 {
					<-time.After(time.Second)
					start := time.Now()
					s.set("t", fragments("n", fmt.Sprint(i+1)))
					c.frame(t.Context())
					if took := time.Since(start); took > 0 {
						t.Errorf("frame %d took %v beside slow topics, want none", i, took)
					}
				}
			})
		})
	}
}

func TestNobodyWatchesNothingIsRendered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		greedy(t, s, "endless")()
		s.mu.Lock()
		began, ended := s.ended, 0
		s.mu.Unlock()
		if began == 0 {
			t.Error("no rendering was ended when its socket went")
		}
		<-time.After(time.Minute)
		s.mu.Lock()
		ended = s.ended
		s.mu.Unlock()
		if ended != began {
			t.Errorf("%d renderings were begun for nobody", ended-began)
		}
	})
}

// Whoever comes back at once, while what nobody watched is still ending, is served.
func TestWatchingAgainWhileARenderingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		s.set("slow", fragments("n", "0"))
		c := s.dial("slow")
		<-time.After(time.Second)
		s.set("slow", fragments("n", "1")) // so that the rendering at work is out of date
		for range 5 {
			_ = c.conn.CloseNow()
			synctest.Wait()
			s.redial(c)
		}
		start := time.Now()
		c.frame(t.Context())
		if took := time.Since(start); took > 5*time.Second || c.model.regions["n"] != "1" {
			t.Errorf("%q came after %v, want 1 after one rendering", c.model.regions["n"], took)
		}
	})
}

func TestATopicThatTakesTooLongSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, live.Options{})
		s.set("t", fragments("n", "0"))
		c := s.dial("t")
		c.frame(t.Context())
		await := func(want bool) time.Duration {
			start := time.Now()
			for {
				m, err := c.read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if m.Late != nil {
					if *m.Late != want {
						t.Errorf("late = %v, want %v", *m.Late, want)
					}
					return time.Since(start)
				}
			}
		}
		synctest.Wait()
		s.change(func() { s.slow = time.Hour })
		if took := await(true); took > 6*time.Second {
			t.Errorf("word of the delay came after %v, want 5 s", took)
		}
		s.change(func() { s.slow = 0 })
		await(false)
		if c.model.regions["n"] != "0" || c.model.frames != 1 {
			t.Errorf("the last good frame is gone: %+v", c.model)
		}
		s.set("t", fragments("n", "1"))
		if c.frame(t.Context()); c.model.regions["n"] != "1" {
			t.Errorf("after the delay: %+v", c.model)
		}
	})
}
