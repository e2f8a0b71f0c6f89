package listener

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds of what clients can hold.
const (
	headerTimeout = 10 * time.Second // for a request's line and headers, and for a TLS handshake
	idleTimeout   = 2 * time.Minute  // between two requests
	writeTimeout  = 30 * time.Second // for a client to take a part of a response, at most 64 KiB
	maxPart       = 64 << 10
	maxHeader     = 64 << 10 // bytes of a request's line and headers

	maxConnections = 4096
	maxPerAddress  = 512
)

// NewServer returns a server for what Listen returns. It drops clients that do not send their headers in time.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Limit returns a listener that closes connections beyond 4,096, and beyond 512 of one address, an IPv6 network of 64 bits being
// one. Loopback and proxies may hold all: others stand behind them. Clients that do not take what is written to them are dropped.
func Limit(l net.Listener, proxies []netip.Prefix) net.Listener {
	return &limited{Listener: l, proxies: proxies, held: make(map[netip.Prefix]int)}
}

type limited struct {
	net.Listener
	proxies []netip.Prefix

	mu   sync.Mutex
	all  int
	held map[netip.Prefix]int // connections by network
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := l.network(c.RemoteAddr())
		if !l.take(from) {
			_ = c.Close()
			continue
		}
		return &conn{Conn: c, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
	}
}

// network returns the network whose connections are counted together, zero if they are not.
func (l *limited) network(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if ip.IsLoopback() || slices.ContainsFunc(l.proxies, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return netip.Prefix{}
	}
	p, _ := ip.Prefix(min(64, ip.BitLen())) // always valid
	return p
}

func (l *limited) take(from netip.Prefix) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all >= maxConnections || from.IsValid() && l.held[from] >= maxPerAddress {
		return false
	}
	l.all++
	if from.IsValid() {
		l.held[from]++
	}
	return true
}

func (l *limited) leave(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all--; from.IsValid() {
		if l.held[from]--; l.held[from] == 0 {
			delete(l.held, from)
		}
	}
}

// conn is a counted connection whose writes have a deadline.
type conn struct {
	net.Conn
	leave func()
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (n int, err error) {
	for first := true; first || n < len(b); first = false {
		if err := c.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
			return n, err
		}
		m, err := c.Conn.Write(b[n:min(n+maxPart, len(b))])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
