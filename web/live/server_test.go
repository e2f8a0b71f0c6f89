package live_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/live"
)

// source is a live.Source whose topics a test sets. Topics whose name begins with "no" are unknown.
type source struct {
	mu      sync.Mutex
	changed chan struct{}
	version uint64
	topics  map[string]live.Snapshot
	calls   map[string]int
	fail    error
	panics  bool
	ended   int           // snapshots that their contexts ended
	slow    time.Duration // that a snapshot takes, but for those whose names tell
}

func newSource() *source {
	return &source{
		changed: make(chan struct{}),
		topics:  map[string]live.Snapshot{},
		calls:   map[string]int{},
	}
}

// set shows regions and lists under a topic.
func (s *source) set(topic string, regions []live.Fragment, lists ...live.List) {
	s.change(func() { s.topics[topic] = live.Snapshot{Regions: regions, Lists: lists} })
}

func (s *source) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *source) Action(string) auth.Action { return auth.View }

func (s *source) Snapshot(ctx context.Context, _ auth.Audience, topic string) (live.Snapshot, error) {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	if strings.HasPrefix(topic, "slow") {
		slow = 4 * time.Second
	}
	if strings.HasPrefix(topic, "endless") {
		slow = time.Hour
	}
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ended++
			return live.Snapshot{}, ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[topic]++
	if s.panics {
		panic("template is broken")
	}
	if s.fail != nil {
		return live.Snapshot{}, s.fail
	}
	if strings.HasPrefix(topic, "no") {
		return live.Snapshot{}, live.ErrNoTopic
	}
	return s.topics[topic], nil
}

func (s *source) rendered(topic string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[topic]
}

// pipes is a network without a kernel, so that a server on it runs in a synctest bubble. A peer that
// does not read blocks the other at once.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// server is a running hub. It ends with the test.
type server struct {
	*source
	t     *testing.T
	hub   *live.Hub
	pipes *pipes
	stop  func() // stops the hub and waits for it

	address string // that sockets are opened from
}

func newServer(t *testing.T, o live.Options) *server {
	t.Helper()
	s := &server{source: newSource(), t: t, pipes: newPipes()}
	o.Source = s.source
	hub, err := live.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s.hub = hub
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- hub.Run(ctx) }()
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client := fair.Client{Address: r.Header.Get("From")}
		hub.ServeHTTP(w, r.WithContext(auth.NewContext(fair.NewContext(r.Context(), client), auth.Grant{Audience: auth.Everything})))
	})}
	go func() { _ = srv.Serve(s.pipes) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = srv.Close()
	})
	t.Cleanup(s.stop)
	synctest.Wait()
	return s
}

// dial opens a socket that shows a topic.
func (s *server) dial(topic string) *client {
	s.t.Helper()
	c := &client{t: s.t, topic: topic}
	s.redial(c)
	return c
}

func (s *server) redial(c *client) {
	s.t.Helper()
	conn, resp, err := s.tryDial(c.url("http://umbel.test/ws"), nil)
	if err != nil {
		s.t.Fatalf("dial: %v, response %v", err, resp)
	}
	conn.SetReadLimit(-1)
	s.t.Cleanup(func() { _ = conn.CloseNow() })
	c.conn = conn
}

func (s *server) tryDial(url string, header http.Header) (*websocket.Conn, *http.Response, error) {
	if header == nil {
		header = http.Header{}
	}
	header.Set("From", s.address)
	transport := &http.Transport{DialContext: s.pipes.dial, DisableKeepAlives: true}
	return websocket.Dial(s.t.Context(), url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport},
		HTTPHeader: header,
	})
}

func fragments(pairs ...string) []live.Fragment {
	var fs []live.Fragment
	for i := 0; i < len(pairs); i += 2 {
		fs = append(fs, live.Fragment{ID: pairs[i], HTML: pairs[i+1]})
	}
	return fs
}
