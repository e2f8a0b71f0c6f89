package main_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/umbelhq/umbel/internal/livetest"
	"github.com/umbelhq/umbel/internal/testenv"
)

// maxLive is how long an event may take to an open page.
const maxLive = 400 * time.Millisecond

// roundRobin is a reverse proxy that sends each request to the next node that answers.
type roundRobin struct {
	mu    sync.Mutex
	nodes []string // their names, the next one first
	urls  map[string]*url.URL
	taken []string // nodes that sockets were opened to
}

// ServeHTTP implements http.Handler.
func (p *roundRobin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := p.take(strings.HasSuffix(r.URL.Path, "/ws"))
	if to == nil {
		http.Error(w, "no node answers", http.StatusBadGateway)
		return
	}
	(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = to.Host
	}}).ServeHTTP(w, r)
}

func (p *roundRobin) take(socket bool) *url.URL {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range p.nodes {
		name := p.nodes[0]
		p.nodes = append(p.nodes[1:], name)
		c, err := net.Dial("tcp", p.urls[name].Host)
		if err != nil {
			continue
		}
		_ = c.Close()
		if socket {
			p.taken = append(p.taken, name)
		}
		return p.urls[name]
	}
	return nil
}

// sockets returns the nodes that sockets were opened to so far.
func (p *roundRobin) sockets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.taken...)
}

// openPage is what a page does to stay live.
type openPage struct {
	conn *websocket.Conn
	livetest.Reader
}

// frame reads up to the next frame.
func (p *openPage) frame(ctx context.Context) (livetest.Message, error) {
	for {
		if m, _, err := p.Read(ctx, p.conn); err != nil || m.Frame {
			return m, err
		}
	}
}

// TestEndToEndPagesOfNodesStayLive has pages open behind a proxy on two nodes, and kills the one that leads. The page on the other one goes
// on; that on the dead one connects again, once, and gets everything.
func TestEndToEndPagesOfNodesStayLive(t *testing.T) {
	t.Parallel()
	n := newNodes(t, testenv.VirtualHost(t))
	p := &roundRobin{urls: make(map[string]*url.URL)}
	for _, name := range []string{"a", "b"} {
		n.start(name)
		u, err := url.Parse(n.nodes[name].url)
		if err != nil {
			t.Fatal(err)
		}
		p.nodes, p.urls[name] = append(p.nodes, name), u
	}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	pages := make(map[string]*openPage)
	for i := range p.nodes {
		page := &openPage{conn: dial(t, &dashboard{url: server.URL + "/"}, "/tasks")}
		if _, err := page.frame(ctx); err != nil {
			t.Fatal(err)
		}
		pages[p.sockets()[i]] = page
	}
	if len(pages) != 2 {
		t.Fatalf("sockets are open to %v, want one to each node", p.sockets())
	}

	dead, alive := n.leader(), "b"
	if dead == "b" {
		alive = "a"
	}
	n.nodes[dead].end(t, syscall.SIGKILL)
	n.live(ctx, pages[alive])

	gone := pages[dead]
	for err := error(nil); err == nil; {
		_, err = gone.frame(ctx)
	}
	conn, _, err := websocket.Dial(ctx, fmt.Sprintf("ws%s/ws?topic=/tasks&epoch=%s&seq=%d", strings.TrimPrefix(server.URL, "http"), gone.Epoch, gone.Seq), nil)
	if err != nil {
		t.Fatalf("connect again: %v", err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	conn.SetReadLimit(16 << 20)
	gone.conn = conn
	if m, err := gone.frame(ctx); err != nil || !m.Reset || !strings.Contains(fmt.Sprint(m.Ops), "live-0") {
		t.Errorf("first frame is %+v, %v, want everything", m, err)
	}
	if taken := p.sockets(); len(taken) != 3 || taken[2] != alive {
		t.Errorf("sockets were opened to %v, want a third one, to %s", taken, alive)
	}
	n.live(ctx, gone)
}

// live fails the test unless one of several events is on a page in time: neither a slow machine nor a busy one makes it fail.
func (n *nodes) live(ctx context.Context, page *openPage) {
	n.t.Helper()
	shortest := time.Hour
	for range 20 {
		id := fmt.Sprintf("live-%d", len(n.bodies))
		body := fmt.Appendf(nil, `{"type": "task-received", "uuid": %q, "name": "shop.pay", "hostname": "w1", "clock": %d, "timestamp": %d}`, id, len(n.bodies)+1, time.Now().Unix())
		n.bodies = append(n.bodies, body)
		begun := time.Now()
		if err := n.bus.publish(ctx, routingKeyOf(body), body); err != nil {
			n.t.Fatalf("publish: %v", err)
		}
		for {
			m, err := page.frame(ctx)
			if err != nil {
				n.t.Fatalf("task %s is not on the page: %v", id, err)
			}
			if strings.Contains(fmt.Sprint(m.Ops), id) {
				break
			}
		}
		if shortest = min(shortest, time.Since(begun)); shortest <= maxLive {
			n.t.Logf("live within %v", shortest)
			return
		}
	}
	n.t.Errorf("live within %v, want %v", shortest, maxLive)
}
