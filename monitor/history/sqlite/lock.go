package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
)

// lock takes the lock file at path for this process, and writes its number into it. The lock goes with the
// process, however that ends. A file that is not at path any more once it is locked keeps nobody out: then the one
// that is there now is taken.
func lock(path string) (*os.File, error) {
	for {
		f, err := lockOnce(path)
		if err != nil || locked(path, f) == nil {
			return f, err
		}
		if err := unlock(f); err != nil {
			return nil, err
		}
	}
}

// locked returns an error if f is not the lock file at path.
func locked(path string, f *os.File) error {
	ours, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err == nil && !os.SameFile(ours, there) {
		err = errors.New("is another file now")
	}
	return err
}

func lockOnce(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator chooses the path
	if err != nil {
		return nil, err
	}
	free, err := tryLock(f)
	switch {
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	case !free:
		err = fmt.Errorf("%w%s: stop that one, or choose another data directory", history.ErrLocked, owner(f))
		return nil, errors.Join(err, f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(err, unlock(f))
	}
	return f, nil
}

// unlock gives a lock back. Closing is not enough while a new process is about to be made, with a copy of
// the file.
func unlock(f *os.File) error { return errors.Join(release(f), f.Close()) }

// owner names the process that wrote its number into a lock file, as far as can be told.
func owner(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	pid, bad := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || bad != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}
