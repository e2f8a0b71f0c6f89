// Package listener opens what the dashboard listens on: TCP or a Unix socket, with TLS whose certificate is read again when
// its files change.
package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"
)

// Listener accepts connections.
type Listener struct {
	net.Listener
	url  string
	path bool // URL may have one
}

// URL returns where a path of the dashboard is: https://127.0.0.1:5555/umbel/, or unix:/run/umbel.sock whatever the path.
func (l *Listener) URL(path string) string {
	if l.path {
		return l.url + path
	}
	return l.url
}

const socketScheme = "unix:"

// IsSocket reports whether an address is that of a Unix socket: unix:/run/umbel.sock.
func IsSocket(address string) bool { return strings.HasPrefix(address, socketScheme) }

// Listen opens an address, host:port or unix:/path, with TLS unless c is nil, and with the limits of Limit. A socket can be
// opened by its owner only, and is removed when the listener is closed.
func Listen(ctx context.Context, address string, c *Certificate, proxies []netip.Prefix) (*Listener, error) {
	l, err := listen(ctx, address)
	if err != nil {
		return nil, err
	}
	l = Limit(l, proxies)
	opened := &Listener{l, "http://" + l.Addr().String(), true}
	if c != nil {
		opened = &Listener{tls.NewListener(l, c.Config()), "https://" + l.Addr().String(), true}
	}
	if IsSocket(address) {
		opened.url, opened.path = address, false
	}
	return opened, nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	path, ok := strings.CutPrefix(address, socketScheme)
	if !ok {
		return lc.Listen(ctx, "tcp", address)
	}
	if path == "" {
		return nil, errors.New("the socket has no path: write unix:/run/umbel.sock")
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	l, err := listenPrivate(ctx, path)
	if err != nil {
		return nil, err
	}
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.SetUnlinkOnClose(false)
	return &socket{l, path, made}, nil
}

// removeStale removes a socket on which nobody listens.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s exists and is no socket", path)
	}
	d := net.Dialer{Timeout: 5 * time.Second}
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return errors.New("another process listens on it")
	}
	if !refused(err) {
		return fmt.Errorf("cannot tell whether another process listens on it: %w", err)
	}
	return os.Remove(path)
}

// socket is a Unix socket that removes its file, unless another has taken its place.
type socket struct {
	*net.UnixListener
	path string
	made fs.FileInfo
}

// Close stops listening and removes the file.
func (s *socket) Close() error {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.made) {
		_ = os.Remove(s.path) // a second Close finds none
	}
	return s.UnixListener.Close()
}
