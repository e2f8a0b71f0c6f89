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

// lock locks the file at path for this process and writes its pid into it. The lock ends with the process, however that
// ends. If the file was replaced meanwhile, lock locks the new one.
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

// unlock releases a lock. Closing is not enough: a child process that is being started may have a copy of the file.
func unlock(f *os.File) error { return errors.Join(release(f), f.Close()) }

// owner returns the pid in a lock file, in parentheses, empty if there is none.
func owner(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	pid, bad := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || bad != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}
