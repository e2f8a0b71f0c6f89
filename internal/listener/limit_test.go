package listener_test

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/internal/listener"
)

// pipes is a listener of connections in memory.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// from is a connection from an address.
type from struct {
	net.Conn
	address net.Addr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// dial returns the end of the server and that of a client at an address.
func dial(ip string) (server, client net.Conn) {
	server, client = net.Pipe()
	return from{server, &net.TCPAddr{IP: net.ParseIP(ip), Port: 4711}}, client
}

func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	queue := make(pipes, 1)
	l := listener.Limit(queue, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	accepted := make(chan net.Conn)
	go func() {
		defer close(accepted)
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			accepted <- c
		}
	}()
	t.Cleanup(func() { close(queue) })
	// connect returns a connection from an address, nil if it is refused.
	connect := func(ip string) net.Conn {
		t.Helper()
		server, client := dial(ip)
		queue <- server
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_, _ = client.Read(make([]byte, 1))
		}()
		select {
		case c := <-accepted:
			return c
		case <-closed:
			return nil
		}
	}
	hold := func(n int, ip string) (last net.Conn) {
		t.Helper()
		for i := range n {
			if last = connect(ip); last == nil {
				t.Fatalf("connection %d of %s is refused", i+1, ip)
			}
		}
		return last
	}
	last := hold(512, "192.0.2.1")
	if connect("192.0.2.1") != nil {
		t.Error("513 connections of one address are accepted")
	}
	_ = last.Close()
	_ = last.Close() // which counts once
	hold(1, "192.0.2.1")
	if connect("192.0.2.1") != nil {
		t.Error("a connection that was closed twice counts twice")
	}
	hold(511, "2001:db8:0:1::1")
	hold(1, "2001:db8:0:1::2")
	if connect("2001:db8:0:1:ffff::3") != nil {
		t.Error("an IPv6 network is more than one client")
	}
	hold(513, "127.0.0.1")
	hold(4096-3*512-1, "10.1.2.3")
	if connect("10.1.2.3") != nil || connect("198.51.100.1") != nil {
		t.Error("more than 4,096 connections are accepted")
	}
}

func TestClientsThatDoNotReadAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		queue := make(pipes, 1)
		l := listener.Limit(queue, nil)
		server, client := dial("192.0.2.1")
		queue <- server
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if n, err := c.Write(make([]byte, 1<<20)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begin) != 30*time.Second {
			t.Errorf("Write = %d, %v after %v, want that it gives up after 30 s", n, err, time.Since(begin))
		}
		// One who reads each part in time takes as long as it takes.
		read := make(chan struct{})
		go func() {
			defer close(read)
			for {
				<-time.After(20 * time.Second)
				if _, err := io.ReadFull(client, make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}()
		if n, err := c.Write(make([]byte, 1<<20)); n != 1<<20 || err != nil {
			t.Errorf("Write = %d, %v, want all", n, err)
		}
		_ = c.Close()
		<-read
	})
}
