package live_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/live"
)

// desk grants what it is told, to everybody.
type desk struct {
	mu    sync.Mutex
	grant auth.Grant
	err   error
}

func (d *desk) Authenticate(*http.Request) (auth.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.grant, d.err
}

func (d *desk) set(g auth.Grant, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.grant, d.err = g, err
}

// caller is a desk that tells when something has ended.
type caller struct {
	desk
	ended chan struct{}
}

func (c *caller) Ended() <-chan struct{} { return c.ended }

func TestSocketsCloseAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		until time.Duration // of the credentials
		end   func(c *caller)
	}{
		"signed out": {time.Hour, func(c *caller) {
			c.set(auth.Grant{}, nil)
			close(c.ended)
		}},
		"expired": {15 * time.Second, func(c *caller) { c.set(auth.Grant{}, nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := auth.Grant{Audience: auth.Everything, Until: time.Now().Add(test.until)}
				d := &caller{desk{grant: g}, make(chan struct{})}
				s := newServer(t, live.Options{Auth: d})
				s.set("t", fragments("a", "1"))
				c := s.dial("t")
				c.frame(t.Context())
				<-time.After(14 * time.Second)
				test.end(d)
				began := time.Now()
				var err error
				for err == nil {
					_, err = c.read(t.Context())
				}
				if took := time.Since(began); websocket.CloseStatus(err) != 4401 || took > 2*time.Second {
					t.Errorf("closed after %v: %v", took, err)
				}
			})
		})
	}
}

func TestSocketsCloseWhenWhatTheirUsersMaySeeChanges(t *testing.T) {
	t.Parallel()
	everything := auth.Grant{Audience: auth.Everything}
	tests := map[string]struct {
		grant auth.Grant
		err   error
		want  websocket.StatusCode
	}{
		"signed out":          {want: 4401},
		"token expired":       {err: &auth.Error{Status: http.StatusUnauthorized, Message: "The token has expired."}, want: 4401},
		"credentials refused": {err: errors.New("no"), want: 4401},
		"other role":          {grant: auth.Grant{Audience: auth.Audience{Role: auth.Viewer, Payload: true}}, want: 4403},
		"no payloads":         {grant: auth.Grant{Audience: auth.Audience{Role: auth.Admin}}, want: 4403},
		"no sessions":         {err: &auth.Error{Status: http.StatusServiceUnavailable}, want: websocket.StatusTryAgainLater},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &desk{grant: everything}
				s := newServer(t, live.Options{Auth: d})
				s.set("t", fragments("a", "1"))
				c := s.dial("t")
				c.frame(t.Context())
				<-time.After(15 * time.Second)
				d.set(test.grant, test.err)
				changed := time.Now()
				var err error
				for err == nil {
					_, err = c.read(t.Context())
				}
				if got := websocket.CloseStatus(err); got != test.want {
					t.Errorf("closed with %v (%v), want %v", got, err, test.want)
				}
				if took := time.Since(changed); took > 30*time.Second {
					t.Errorf("closed after %v, want at most 30 s", took)
				}
			})
		})
	}
}
