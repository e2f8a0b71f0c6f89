package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
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

// historyFlags say where the history is: in a directory, or in PostgreSQL.
type historyFlags struct {
	dirFlag
	History     string `env:"UMBEL_HISTORY" placeholder:"URL" help:"Keep the history in PostgreSQL, version 15 or later, in place of --data-dir: postgres://user:password@host/database."`
	HistoryFile string `env:"UMBEL_HISTORY_FILE" placeholder:"FILE" help:"Read the URL of the history from a file, such as a mounted secret."`
}

// url returns the address of PostgreSQL, empty if the history is in a directory.
func (f *historyFlags) url() (string, error) {
	url, source, err := secret("--history", f.History, f.HistoryFile)
	if err == nil && (url != "" || f.HistoryFile != "") && !postgres.IsURL(url) {
		err = usageError{errors.New(source + ": the URL begins with postgres://")}
	}
	return url, err
}

// place is where a history is: in a directory, or in PostgreSQL.
type place struct{ dir, url, schema string }

// place returns where the history is. Unless inMemory, a directory must not be :memory:.
func (f *historyFlags) place(inMemory bool) (p place, err error) {
	if p.url, err = f.url(); err != nil || p.url != "" {
		return p, err
	}
	if inMemory {
		p.dir, err = f.dir()
	} else {
		p.dir, err = f.onDisk()
	}
	return p, err
}

// memberFlags say where the history is that a command reads, of several clusters that of one.
type memberFlags struct {
	historyFlags
	Member string `name:"cluster" placeholder:"NAME" help:"Of several clusters, the one whose history it is."`
}

// place returns where the history is.
func (f *memberFlags) place() (place, error) {
	p, err := f.historyFlags.place(false)
	if err != nil {
		return p, err
	}
	if p.schema, err = schemaOf(f.Member); p.dir != "" && f.Member != "" {
		p.dir = filepath.Join(p.dir, dashboard.ClustersDir, f.Member)
	}
	return p, err
}

// schemaOf returns the schema of PostgreSQL that has the history of one of several clusters, empty for that of the only one.
func schemaOf(member string) (string, error) {
	if member == "" {
		return "", nil
	}
	if err := checkNames(member); err != nil {
		return "", err
	}
	return dashboard.ClusterSchema(member), nil
}

// open opens the history. An error wraps fs.ErrNotExist if there is no directory to read.
func (p place) open(ctx context.Context, rules history.RetentionRules, readOnly bool, log *slog.Logger) (history.Store, error) {
	if p.url != "" {
		return postgres.Open(ctx, postgres.Options{URL: p.url, Schema: p.schema, ReadOnly: readOnly, Rules: rules, Logger: log})
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: p.dir, ReadOnly: readOnly, Rules: rules, Logger: log})
	if readOnly && errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no history in %s: set --data-dir", p.dir)
	}
	if err != nil {
		return nil, err
	}
	return db, nil
}

// read calls use with the history, opened for reading only.
func (p place) read(ctx context.Context, rules history.RetentionRules, log *slog.Logger, use func(db history.Store) error) error {
	db, err := p.open(ctx, rules, true, log)
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

// read calls use with the history, opened for reading only.
func (f *memberFlags) read(ctx context.Context, log *slog.Logger, use func(db history.Store) error) error {
	p, err := f.place()
	if err != nil {
		return err
	}
	return p.read(ctx, history.RetentionRules{}, log, use)
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
