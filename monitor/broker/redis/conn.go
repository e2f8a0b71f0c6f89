package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/umbelhq/umbel/internal/dial"
)

const (
	ioTimeout = 10 * time.Second // of commands that do not wait for anything
	poolSize  = 4
)

var errOver = errors.New("connection has ended")

// conn is a client of one address, and the sockets that it has opened.
type conn struct {
	endpoint endpoint
	keys     keys
	client   *redis.Client

	mu      sync.Mutex // guards what follows
	sockets []net.Conn // sockets opened before settle
	settled bool       // the sockets are the client's alone
	sealed  bool       // no more are opened
}

func newConn(b *Broker, e endpoint) *conn {
	l := &conn{endpoint: e, keys: b.options.keys(e.db)}
	l.client = redis.NewClient(b.clientOptions(e, e.network, e.address, l.dial))
	return l
}

// dialer opens a socket.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// clientOptions leave nothing to the client that the package does itself: it neither retries nor redials, and does
// not speak what old servers do not know.
func (b *Broker) clientOptions(e endpoint, network, address string, dial dialer) *redis.Options {
	name := strings.Join(strings.Fields("umbel "+b.options.Version), "-")
	return &redis.Options{
		Network: network, Addr: address, Dialer: dial,
		Username: e.user, Password: e.password, DB: e.db,
		Protocol: 2, MaxRetries: -1, DialerRetries: 1, DialTimeout: b.options.DialTimeout,
		ReadTimeout: ioTimeout, WriteTimeout: ioTimeout, ContextTimeoutEnabled: true,
		PoolSize: poolSize, PipelinePoolSize: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		OnConnect: func(ctx context.Context, c *redis.Conn) error {
			if err := c.ClientSetName(ctx, name).Err(); !isRefusal(err) { // users may lack that permission
				return err
			}
			return nil
		},
	}
}

// dial opens a socket for the client.
func (l *conn) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if l.isSealed() {
		return failedConn{errOver}, nil
	}
	conn, err := l.endpoint.dial(ctx, network, address)
	if err != nil {
		return failedConn{fmt.Errorf("dial: %w", err)}, nil // the client unwraps it once
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealed {
		_ = conn.Close()
		return failedConn{errOver}, nil
	}
	if !l.settled {
		l.sockets = append(l.sockets, conn)
	}
	return conn, nil
}

// dial opens a socket at an address, and shakes hands for TLS if the endpoint wants that.
func (e endpoint) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	return dial.Conn(ctx, network, address, e.secure, e.tls, host)
}

func (l *conn) isSealed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sealed
}

// seal lets the client open no more sockets: it would silently replace a lost one.
func (l *conn) seal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed = true
}

// newest is the socket that was opened last before settle, nil if there is none.
func (l *conn) newest() net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.sockets) == 0 {
		return nil
	}
	return l.sockets[len(l.sockets)-1]
}

// settle ends the period in which abort closes the sockets opened so far.
func (l *conn) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled, l.sockets = true, nil
}

// abort ends whatever waits on a socket.
func (l *conn) abort() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sealed = true
	for _, c := range l.sockets {
		_ = c.Close()
	}
}

// close releases the client and its sockets.
func (l *conn) close() {
	l.seal()
	_ = l.client.Close()
}

// master asks the sentinels for the address of the master.
func (b *Broker) master(ctx context.Context, e endpoint) (string, error) {
	var failed dial.Errors
	for _, address := range e.sentinels {
		found, err := b.askSentinel(ctx, e, address)
		if err == nil {
			return found, nil
		}
		failed = append(failed, fmt.Errorf("ask sentinel %s: %w", address, err))
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
	return "", failed
}

func (b *Broker) askSentinel(ctx context.Context, e endpoint, address string) (string, error) {
	login := endpoint{
		user: b.options.SentinelUsername, password: b.options.SentinelPassword, secure: e.secure, tls: e.tls,
	}
	ctx, cancel := context.WithTimeout(ctx, b.options.DialTimeout/2) // leaves time for the next one
	defer cancel()
	c := redis.NewSentinelClient(b.clientOptions(login, "tcp", address,
		func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := login.dial(ctx, network, address)
			if err != nil {
				return failedConn{fmt.Errorf("dial: %w", err)}, nil // the client unwraps it once
			}
			return conn, nil
		}))
	// What waits for a reply ends with the client.
	release := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		if release() {
			_ = c.Close()
		}
	}()
	found, err := c.GetMasterAddrByName(ctx, b.options.MasterName).Result()
	switch {
	case errors.Is(err, redis.Nil):
		why := fmt.Sprintf("it knows no master %q; check the master's name", b.options.MasterName)
		return "", &dial.HintError{Message: why, Err: err}
	case err != nil:
		return "", err
	case len(found) != 2:
		return "", errors.New("it answered with no address")
	}
	return net.JoinHostPort(found[0], found[1]), nil
}

// failedConn stands for a socket that could not be opened; it fails with the reason. If the dialer returned
// the error, the client would write to standard error and dial in the background.
type failedConn struct{ err error }

func (u failedConn) Read([]byte) (int, error)       { return 0, u.err }
func (u failedConn) Write([]byte) (int, error)      { return 0, u.err }
func (failedConn) Close() error                     { return nil }
func (failedConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (failedConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (failedConn) SetDeadline(time.Time) error      { return nil }
func (failedConn) SetReadDeadline(time.Time) error  { return nil }
func (failedConn) SetWriteDeadline(time.Time) error { return nil }
