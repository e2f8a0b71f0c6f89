package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

func lockFile(dir string) string { return filepath.Join(dir, "lock") }

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func replace(t *testing.T, path, with string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(with), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestALockThatIsRemovedIsMadeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	defer closed(t, d)
	remove(t, lockFile(dir))
	if _, err := d.Write(t.Context(), history.Batch{Journal: []byte("j")}); err != nil {
		t.Fatalf("write without a lock file: %v", err)
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir}); !errors.Is(err, history.ErrLocked) {
		t.Errorf("open what is in use: error %v, want %v", err, history.ErrLocked)
	}
}

func TestARemovedLockIsMadeAgainWithoutAWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		d := open(t, dir)
		defer closed(t, d)
		defer running(t, d)()
		remove(t, lockFile(dir))
		<-time.After(3 * time.Second)
		synctest.Wait()
		if _, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir}); !errors.Is(err, history.ErrLocked) {
			t.Errorf("open what is in use: error %v, want %v", err, history.ErrLocked)
		}
	})
}

func TestNothingIsWrittenBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := open(t, dir)
	defer closed(t, first)
	remove(t, lockFile(dir))
	second := open(t, dir) // before the first has noticed
	for _, when := range []string{"while another has it", "after another had it"} {
		_, err := first.Write(t.Context(), history.Batch{Journal: []byte("j")})
		if err == nil {
			t.Fatalf("%s: written", when)
		}
		expectWords(t, err.Error(), []string{"lock", "two processes", "restart Umbel"})
		expectWords(t, first.Health().LastError, []string{"two processes"})
		if second != nil {
			closed(t, second)
			second = nil
		}
	}
}

func TestAFileOfAnotherProgramIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string]string{
		"with an id":      `CREATE TABLE photos (p); INSERT INTO photos VALUES (1); PRAGMA application_id = 7`,
		"without an id":   `CREATE TABLE photos (p); INSERT INTO photos VALUES (1)`,
		"that uses goose": `CREATE TABLE photos (p); CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY, version_id INTEGER, is_applied INTEGER)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script(t, dir, statements)
			before := read(t, file(dir))
			for _, o := range []sqlite.Options{{Dir: dir}, {Dir: dir, ReplaceDamaged: true}, {Dir: dir, ReadOnly: true}} {
				d, err := sqlite.Open(t.Context(), o)
				if err == nil {
					closed(t, d)
					t.Fatalf("opened with %+v", o)
				}
				expectWords(t, err.Error(), []string{"history.db", "another program", "photos", "another data directory"})
			}
			if read(t, file(dir)) != before {
				t.Error("the file was changed")
			}
		})
	}
}

func TestAHistoryWithoutAnIDIsTakenOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	batches := testBatches(t, 40, 24, 8)
	d := open(t, dir)
	write(t, d, batches[0])
	closed(t, d)
	script(t, dir, `PRAGMA application_id = 0`)
	d = open(t, dir)
	expectWritten(t, d, batches[:1])
	closed(t, d)
	if id := read(t, file(dir))[68:72]; id != "Umbl" {
		t.Errorf("application id = %q, want Umbl", id)
	}
}

func TestAlteredTablesAreToldInASentence(t *testing.T) {
	t.Parallel()
	for name, statements := range map[string]string{
		"no versions":       `DROP TABLE goose_db_version`,
		"versions removed":  `DELETE FROM goose_db_version`,
		"the last removed":  `DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)`,
		"one removed":       `DELETE FROM goose_db_version WHERE version_id = 3`,
		"a column renamed":  `ALTER TABLE goose_db_version RENAME COLUMN is_applied TO applied`,
		"symbols are gone":  `DROP TABLE symbols`,
		"settings are gone": `DROP TABLE meta`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			closed(t, open(t, dir))
			script(t, dir, statements)
			d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, ReplaceDamaged: true})
			if err == nil {
				closed(t, d)
				t.Fatal("opened")
			}
			expectWords(t, err.Error(), []string{"history.db", "changed by another program", "backup", "umbel repair"})
		})
	}
}

// running runs d until the function that it returns is called.
func running(t *testing.T, d *sqlite.DB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- d.Run(ctx, func([]string) {}) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestAYoungHistoryIsMoreThanItsLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir, other := t.TempDir(), t.TempDir()
		batches := testBatches(t, 40, 24, 8)
		d := open(t, dir)
		defer closed(t, d)
		defer running(t, d)()
		write(t, d, batches[0])
		<-time.After(30 * time.Second) // readers may hold up a checkpoint
		synctest.Wait()
		replace(t, file(other), read(t, file(dir)))
		alone := open(t, other)
		defer closed(t, alone)
		expectWritten(t, alone, batches[:1])
	})
}

func TestWhatIsMissingIsTold(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	batches := testBatches(t, 40, 24, 8)
	notices := func() string {
		d := open(t, dir)
		defer closed(t, d)
		return strings.Join(d.Health().Notices, "\n")
	}
	d := open(t, dir)
	write(t, d, batches[0])
	closed(t, d)
	if got := notices(); got != "" {
		t.Errorf("notices of what is whole: %s", got)
	}
	old := read(t, file(dir))
	d = open(t, dir)
	write(t, d, batches[1])
	closed(t, d)
	replace(t, file(dir), old) // as if its log had been removed
	expectWords(t, notices(), []string{"missing", "history.db-wal", "older copy", "stop Umbel"})
	if got := notices(); got != "" {
		t.Errorf("notices at the next start: %s", got)
	}
	remove(t, file(dir))
	expectWords(t, notices(), []string{"is missing", "A new one was created", "put it back"})
}

func TestADamagedFileIsSetAside(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"no database": func(t *testing.T, dir string) { t.Helper(); overwrite(t, dir, 0, []byte("no database at all")) },
		"cut off": func(t *testing.T, dir string) {
			t.Helper()
			if err := os.Truncate(file(dir), 50_000); err != nil {
				t.Fatal(err)
			}
		},
		"garbage at the end": func(t *testing.T, dir string) {
			t.Helper()
			overwrite(t, dir, int64(len(read(t, file(dir))))-8192, []byte(strings.Repeat("\xa5", 8192)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			batches := testBatches(t, 400, 24, 80)
			d := open(t, dir)
			for _, b := range batches {
				write(t, d, b)
			}
			closed(t, d)
			spoil(t, dir)
			before := read(t, file(dir))
			for range 2 { // the second time, it is still aside
				d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, ReplaceDamaged: true})
				if err != nil {
					t.Fatal(err)
				}
				files, err := sqlite.DamagedFiles(dir)
				if err != nil || len(files) != 1 {
					t.Fatalf("set aside: %q, %v, want one file", files, err)
				}
				const header = 100 // SQLite counts in it who opens the file
				if read(t, files[0])[header:] != before[header:] {
					t.Error("what was set aside is not what was there")
				}
				h := d.Health()
				if len(h.Notices) != 1 {
					t.Fatalf("notices: %q, want one", h.Notices)
				}
				expectWords(t, h.Notices[0], []string{files[0], "damaged", "set aside", "umbel repair"})
				if _, err := d.Write(t.Context(), history.Batch{Journal: []byte("j")}); err != nil {
					t.Error(err)
				}
				closed(t, d)
			}
		})
	}
}

// TestDamageThatIsFoundLaterIsRemembered has a file fail while it is in use: the next start looks at all of it.
func TestDamageThatIsFoundLaterIsRemembered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	d.NoteDamage()
	_ = d.Close()
	if got := read(t, filepath.Join(dir, "history.db-mark")); !strings.Contains(got, `"damaged":true`) {
		t.Errorf("mark = %s, want that it is damaged", got)
	}
}
