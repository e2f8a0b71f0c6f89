package main_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between Umbel and the broker, and can be cut.
type proxy struct {
	target  string
	address string // stays the same when it is restored
	broker  string // URL of the broker through the proxy

	mu       sync.Mutex
	listener net.Listener // nil while it is cut
	conns    []net.Conn
	wg       sync.WaitGroup
}

// newProxy stands before the broker at a URL.
func newProxy(tb testing.TB, broker string) *proxy {
	tb.Helper()
	u, err := url.Parse(broker)
	if err != nil {
		tb.Fatalf("parse the broker's URL: %v", err)
	}
	p := &proxy{target: u.Host, address: "127.0.0.1:0"}
	p.restore(tb)
	u.Host = p.address
	p.broker = u.String()
	tb.Cleanup(func() {
		p.cut()
		p.wg.Wait()
	})
	return p
}

// restore lets connections through.
func (p *proxy) restore(tb testing.TB) {
	tb.Helper()
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		tb.Fatalf("listen: %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.address = l, l.Addr().String()
	p.wg.Go(func() { p.serve(l) })
}

// cut ends all connections without a word and refuses new ones.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != nil {
		_ = p.listener.Close()
		p.listener = nil
	}
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) serve(l net.Listener) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, near, far)
		if p.listener != l { // cut meanwhile
			_, _ = near.Close(), far.Close()
		}
		p.mu.Unlock()
		p.wg.Go(func() { pass(near, far) })
		p.wg.Go(func() { pass(far, near) })
	}
}

func pass(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}
