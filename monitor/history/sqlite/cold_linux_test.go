package sqlite_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// cold opens the history anew, none of which is in memory.
func cold(b *testing.B, dir string) *sqlite.DB {
	b.Helper()
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, "history.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		b.Fatal(errno)
	}
	return d
}
