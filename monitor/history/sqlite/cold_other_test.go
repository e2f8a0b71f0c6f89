//go:build !linux

package sqlite_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// cold opens the history anew. The system may still have it in memory.
func cold(b *testing.B, dir string) *sqlite.DB {
	b.Helper()
	d, err := sqlite.Open(b.Context(), sqlite.Options{Dir: dir, ReadOnly: true})
	if err != nil {
		b.Fatal(err)
	}
	return d
}
