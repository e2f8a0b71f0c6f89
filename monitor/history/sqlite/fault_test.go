package sqlite_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil func(t *testing.T, dir string)
		is    error
		says  []string
	}{
		"a newer schema": {
			spoil: func(t *testing.T, dir string) {
				script(t, dir, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)`)
			},
			is:   history.ErrNewerVersion,
			says: []string{"newer version of Umbel", "schema 9999", "another data directory"},
		},
		"no database": {
			spoil: func(t *testing.T, dir string) {
				overwrite(t, dir, 0, []byte(strings.Repeat("no database ", 10)))
			},
			says: []string{"history.db", "damaged", "backup"},
		},
		"a schema of garbage": {
			spoil: func(t *testing.T, dir string) { overwrite(t, dir, 100, []byte(strings.Repeat("garbage ", 400))) },
			says:  []string{"history.db", "damaged", "backup"},
		},
		"a file that is cut off": {
			spoil: func(t *testing.T, dir string) {
				if err := os.Truncate(file(dir), 5000); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"history.db", "damaged", "backup"},
		},
		"a directory in place of the file": {
			spoil: func(t *testing.T, dir string) {
				if err := errors.Join(os.Remove(file(dir)), os.Mkdir(file(dir), 0o700)); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"history.db", "is a directory"},
		},
		"a file in place of the directory": {
			spoil: func(t *testing.T, dir string) {
				if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"history.db", "not a directory"},
		},
		"a directory that takes no files": {
			spoil: func(t *testing.T, dir string) {
				if err := errors.Join(os.RemoveAll(dir), os.Symlink("/proc/self", dir)); err != nil {
					t.Fatal(err)
				}
			},
			says: []string{"history.db", "lock"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			closed(t, open(t, dir))
			test.spoil(t, dir)
			d, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
			if err == nil {
				closed(t, d)
				t.Fatal("opened without an error")
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v, want one that is %v", err, test.is)
			}
			expectWords(t, err.Error(), test.says)
		})
	}
}

func TestOneProcessHasTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	_, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir})
	if !errors.Is(err, history.ErrLocked) {
		t.Fatalf("open what is in use: error %v, want %v", err, history.ErrLocked)
	}
	expectWords(t, err.Error(), []string{dir, "in use by another process", "pid", "another data directory"})

	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := other.CombinedOutput()
	if err == nil {
		t.Error("another process opened what is in use")
	}
	expectWords(t, string(out), []string{"in use by another process (pid " + strconv.Itoa(os.Getpid()) + ")"})
	closed(t, d)
	closed(t, open(t, dir))
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, dir)
	defer closed(t, d)
	if _, err := d.Write(t.Context(), history.Batch{Journal: []byte("j")}); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]os.FileMode)
	for _, name := range []string{".", "history.db", "history.db-wal", "lock"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = info.Mode().Perm()
	}
	want := map[string]os.FileMode{".": 0o700, "history.db": 0o600, "history.db-wal": 0o600, "lock": 0o600}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-want +got):\n%s", diff)
	}
}

func TestReadOnlyReadsBesideTheWriter(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	batches := testBatches(t, 40, 24, 8)
	d := open(t, dir)
	look := func(want []history.Batch) {
		t.Helper()
		r, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer closed(t, r)
		expectWritten(t, r, want)
		if _, err := r.Write(t.Context(), batches[3]); err == nil {
			t.Error("written to a store that was opened for reading")
		}
	}
	write(t, d, batches[0])
	look(batches[:1])
	write(t, d, batches[1])
	look(batches[:2])
	closed(t, d)
	look(batches[:2])
}

func TestReadOnlyMakesNothing(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	_, err := sqlite.Open(t.Context(), sqlite.Options{Dir: dir, ReadOnly: true})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open what is not there: error %v, want %v", err, os.ErrNotExist)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: error %v, want %v", err, os.ErrNotExist)
	}
}

// TestWritesFailAndWorkAgain breaks writing in ways that an operator can mend.
func TestWritesFailAndWorkAgain(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil, mend func(t *testing.T, d *sqlite.DB, dir string)
		says        []string
	}{
		"disk full": {
			spoil: func(t *testing.T, d *sqlite.DB, _ string) { pragma(t, d, "max_page_count=1") },
			mend:  func(t *testing.T, d *sqlite.DB, _ string) { pragma(t, d, "max_page_count=1000000000") },
			says:  []string{"disk is full", "free"},
		},
		"file read-only": {
			spoil: func(t *testing.T, d *sqlite.DB, _ string) { pragma(t, d, "query_only=1") },
			mend:  func(t *testing.T, d *sqlite.DB, _ string) { pragma(t, d, "query_only=0") },
			says:  []string{"cannot be written", "permissions"},
		},
		"file moved away": {
			spoil: func(t *testing.T, _ *sqlite.DB, dir string) { rename(t, file(dir), dir+"/aside") },
			mend:  func(t *testing.T, _ *sqlite.DB, dir string) { rename(t, dir+"/aside", file(dir)) },
			says:  []string{"history.db was removed", "put it back", "restart"},
		},
		"file replaced": {
			spoil: func(t *testing.T, _ *sqlite.DB, dir string) {
				rename(t, file(dir), dir+"/aside")
				if err := os.WriteFile(file(dir), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			},
			mend: func(t *testing.T, _ *sqlite.DB, dir string) { rename(t, dir+"/aside", file(dir)) },
			says: []string{"replaced", "put it back"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			batches := testBatches(t, 400, 5, 40)
			half := len(batches) / 2
			d := open(t, dir)
			defer func() { closed(t, d) }()
			for _, b := range batches[:half] {
				write(t, d, b)
			}
			test.spoil(t, d, dir)
			for range 3 {
				_, err := d.Write(t.Context(), batches[half])
				if err == nil {
					t.Fatal("written without an error")
				}
				expectWords(t, err.Error(), test.says)
				h := d.Health()
				if h.FailedAt.IsZero() {
					t.Error("health does not say when writing failed")
				}
				expectWords(t, h.LastError, test.says)
				expectWritten(t, d, batches[:half])
			}
			test.mend(t, d, dir)
			for _, b := range batches[half:] {
				write(t, d, b)
			}
			if h := d.Health(); h.LastError != "" {
				t.Errorf("health says %q after a write", h.LastError)
			}
			expectWritten(t, d, batches)
			closed(t, d)
			d = open(t, dir)
			expectWritten(t, d, batches)
		})
	}
}

func TestADeletedFileIsNoticedWithoutAWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	defer closed(t, d)
	if h := d.Health(); h.LastError != "" {
		t.Fatalf("health says %q of a new store", h.LastError)
	}
	if err := os.Remove(file(dir)); err != nil {
		t.Fatal(err)
	}
	h := d.Health()
	expectWords(t, h.LastError, []string{"history.db was removed", "restart"})
	if h.FailedAt.IsZero() {
		t.Error("health does not say when")
	}
}

// TestDamageIsAnError fills pages of a file in use with garbage: whatever is read or written then answers,
// or says what is wrong.
func TestDamageIsAnError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	batches := testBatches(t, 4_000, 24, 400)
	d := open(t, dir)
	for _, b := range batches[:8] {
		write(t, d, b)
	}
	closed(t, d)
	d = open(t, dir)
	info, err := os.Stat(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	d.Reconnect()
	const spared = 64 << 10 // the schema, which connections read when they begin
	overwrite(t, dir, spared, []byte(strings.Repeat("\xa5", int(info.Size())-spared)))

	for what, call := range map[string]func(ctx context.Context) error{
		"write":   func(ctx context.Context) error { _, err := d.Write(ctx, batches[8]); return err },
		"restore": func(context.Context) error { _, _, err := restored(d); return err },
		"task": func(ctx context.Context) error {
			for _, t := range batches[0].Tasks {
				if _, err := d.Task(ctx, t.View.ID); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		if err := call(t.Context()); err == nil {
			t.Errorf("%s of garbage: no error", what)
		} else {
			expectWords(t, err.Error(), []string{"damaged", "backup"})
		}
	}
	expectWords(t, d.Health().LastError, []string{"damaged", "backup"})
	_ = d.Close() // may fail, but ends
}
