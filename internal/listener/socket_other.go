//go:build !linux

package listener

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// listenPrivate opens a socket of mode 0600. It is made in a directory that only the owner can enter, so that there is no
// moment at which others could open it.
func listenPrivate(ctx context.Context, path string) (*net.UnixListener, error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".umbel-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	inside := filepath.Join(dir, "s")
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", inside)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.Chmod(inside, 0o600), os.Rename(inside, path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	u, _ := l.(*net.UnixListener)
	return u, nil
}

// refused reports whether nobody listens.
func refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
