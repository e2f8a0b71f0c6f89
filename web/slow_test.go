package web_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/internal/listener"
	"github.com/umbelhq/umbel/web"
)

// inMemory is a listener of one connection.
type inMemory struct{ conns chan net.Conn }

func (l inMemory) Accept() (net.Conn, error) {
	c, ok := <-l.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (l inMemory) Close() error   { return nil }
func (l inMemory) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// Clients that send a byte a second are dropped, whoever they are and whatever is said to them.
func TestSlowClientsAreDropped(t *testing.T) {
	t.Parallel()
	h := newWeb(t, web.Options{Auth: doorkeeper{"/login"}, Hosts: []string{"umbel.example"}})
	const body = "Content-Type: application/json\r\nContent-Length: 10000\r\n"
	for name, head := range map[string]string{
		"headers":                "GET / HTTP/1.1\r\nHost: umbel.example\r\nX-A: ",
		"headers of an admin":    "GET / HTTP/1.1\r\nHost: umbel.example\r\nAs: admin\r\nX-A: ",
		"line":                   "GET /",
		"body of nobody":         "POST /api/v1/views HTTP/1.1\r\nHost: umbel.example\r\n" + body + "\r\n",
		"body of an admin":       "POST /api/v1/views HTTP/1.1\r\nHost: umbel.example\r\nAs: admin\r\n" + body + "\r\n",
		"body of a form":         "POST /views HTTP/1.1\r\nHost: umbel.example\r\nAs: admin\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n",
		"body of a sign-in":      "POST /login HTTP/1.1\r\nHost: umbel.example\r\n" + body + "\r\n",
		"body of a page":         "GET / HTTP/1.1\r\nHost: umbel.example\r\nAs: viewer\r\n" + body + "\r\n",
		"body of an asset":       "GET /assets/x HTTP/1.1\r\nHost: umbel.example\r\n" + body + "\r\n",
		"body to another host":   "POST / HTTP/1.1\r\nHost: evil.example\r\n" + body + "\r\n",
		"body of another site":   "POST /views HTTP/1.1\r\nHost: umbel.example\r\nAs: admin\r\nOrigin: https://evil.example\r\n" + body + "\r\n",
		"chunks to another host": "POST / HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := inMemory{make(chan net.Conn, 1)}
				server := listener.NewServer(h, slog.New(slog.DiscardHandler))
				served := make(chan error, 1)
				go func() { served <- server.Serve(listener.Limit(l, nil)) }()
				end, client := net.Pipe()
				l.conns <- end
				go func() { _, _ = io.Copy(io.Discard, client) }()
				begin := time.Now()
				_, err := fmt.Fprint(client, head)
				for err == nil && time.Since(begin) < time.Minute {
					<-time.After(time.Second)
					_ = client.SetDeadline(time.Now().Add(time.Minute))
					_, err = client.Write([]byte("a"))
				}
				if took := time.Since(begin); err == nil || took > 25*time.Second {
					t.Errorf("it is dropped after %v: %v, want within 25 s", took, err)
				}
				_ = client.Close()
				close(l.conns)
				_ = server.Close()
				if err := <-served; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
					t.Error(err)
				}
			})
		})
	}
}
