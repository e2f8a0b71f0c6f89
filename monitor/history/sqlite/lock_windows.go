package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// beyond is a byte behind all that lock writes, since others cannot read a byte that is locked.
func beyond() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1} }

// tryLock locks a file unless another has.
func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, beyond())
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

func release(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, beyond())
}
