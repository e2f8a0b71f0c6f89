package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// keepFlags say how long history is kept.
type keepFlags struct {
	KeepSucceeded age   `env:"UMBEL_KEEP_SUCCEEDED" default:"7d" placeholder:"AGE" help:"Retention of succeeded tasks; 0 keeps them forever."`
	KeepFailed    age   `env:"UMBEL_KEEP_FAILED" default:"30d" placeholder:"AGE" help:"Retention of failed, revoked and rejected tasks."`
	KeepLost      age   `env:"UMBEL_KEEP_LOST" default:"7d" placeholder:"AGE" help:"Retention of lost and dismissed tasks."`
	KeepEvents    age   `env:"UMBEL_KEEP_EVENTS" default:"3d" placeholder:"AGE" help:"Retention of events not shown by an execution."`
	KeepWorkers   age   `env:"UMBEL_KEEP_WORKERS" default:"7d" placeholder:"AGE" help:"Retention of offline workers."`
	KeepCommands  age   `env:"UMBEL_KEEP_COMMANDS" default:"90d" placeholder:"AGE" help:"Retention of finished commands. The audit log is kept."`
	MaxDBSize     *size `name:"max-db-size" env:"UMBEL_MAX_DB_SIZE" placeholder:"SIZE" help:"Maximum size of the history. Beyond it the oldest finished and lost tasks are removed; active ones do not count. 0 for no limit. By default 2GiB, 512MiB with --data-dir :memory:."`
}

// rules are those of a history in dir.
func (f *keepFlags) rules(dir string) history.RetentionRules {
	r := dashboard.DefaultRetention(dir)
	r.Succeeded, r.Failed = time.Duration(f.KeepSucceeded), time.Duration(f.KeepFailed)
	r.Lost = time.Duration(f.KeepLost)
	r.Events, r.Commands = time.Duration(f.KeepEvents), time.Duration(f.KeepCommands)
	r.Workers = time.Duration(f.KeepWorkers)
	if f.MaxDBSize != nil {
		r.MaxSize = int64(*f.MaxDBSize)
	}
	return r
}

// dirFlag says where history is.
type dirFlag struct {
	DataDir string `env:"UMBEL_DATA_DIR" placeholder:"DIR" help:"Directory of the history, or :memory:. By default $XDG_DATA_HOME/umbel or ~/.local/share/umbel."`
}

// onDisk returns the directory, which must not be :memory:.
func (f *dirFlag) onDisk() (string, error) {
	dir, err := f.dir()
	if err == nil && dir == sqlite.Memory {
		return "", usageError{errors.New("--data-dir " + dir + " keeps nothing on disk")}
	}
	return dir, err
}

// read calls use with the history, opened for reading only.
func (f *dirFlag) read(ctx context.Context, o sqlite.Options, use func(db history.Store) error) error {
	var err error
	if o.Dir, err = f.onDisk(); err != nil {
		return err
	}
	o.ReadOnly = true
	db, err := sqlite.Open(ctx, o)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no history in %s: set --data-dir", o.Dir)
	}
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

// dir returns the directory: the user's own where none is named.
func (f *dirFlag) dir() (string, error) {
	if f.DataDir != "" {
		return f.DataDir, nil
	}
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "umbel"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		return "", usageError{errors.New("no home directory for the history: " +
			"set --data-dir DIR, or --data-dir :memory: to keep it in memory")}
	}
	return filepath.Join(home, ".local", "share", "umbel"), nil
}
