//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// tryLock locks a file unless another has.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func release(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
