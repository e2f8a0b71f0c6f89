package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

func file(dir string) string { return filepath.Join(dir, "history.db") }

func write(t testing.TB, d *sqlite.DB, b history.Batch) {
	t.Helper()
	w, err := d.Write(t.Context(), b)
	if err != nil {
		t.Fatalf("write: %v", err)
	}
	if len(w.Existing) > 0 {
		t.Fatalf("%d tasks were known", len(w.Existing))
	}
}

// expectWritten fails the test unless the store has what batches leave behind.
func expectWritten(t *testing.T, d *sqlite.DB, batches []history.Batch) {
	t.Helper()
	tasks, journal, err := restored(d)
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	wantTasks, wantJournal := written(batches)
	if diff := cmp.Diff(wantJournal, journal); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantTasks, tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}

func expectWords(t *testing.T, got string, words []string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(got, w) {
			t.Errorf("%q does not say %q", got, w)
		}
	}
}

// pragma sets one on the connection that writes.
func pragma(t *testing.T, d *sqlite.DB, setting string) {
	t.Helper()
	if err := d.Pragma(t.Context(), setting); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// overwrite replaces a part of the file.
func overwrite(t *testing.T, dir string, offset int64, with []byte) {
	t.Helper()
	f, err := os.OpenFile(file(dir), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt(with, offset)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// script runs SQL on the closed file.
func script(t testing.TB, dir, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", file(dir))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec(text)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}
