package listener

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// listenPrivate opens a socket of mode 0600. Linux gives the file the mode that the socket has when it is bound, so that
// there is no moment at which others could open it.
func listenPrivate(ctx context.Context, path string) (*net.UnixListener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var mode error
		err := c.Control(func(fd uintptr) { mode = syscall.Fchmod(int(fd), 0o600) })
		return errors.Join(err, mode)
	}}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	u, _ := l.(*net.UnixListener)
	return u, nil
}

// refused reports whether nobody listens.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
