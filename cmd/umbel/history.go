package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/history"
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
