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
	KeepSucceeded age   `env:"UMBEL_KEEP_SUCCEEDED" default:"7d" placeholder:"AGE" help:"Keep tasks that succeeded for so long. 0: for ever."`
	KeepFailed    age   `env:"UMBEL_KEEP_FAILED" default:"30d" placeholder:"AGE" help:"Keep tasks that failed, were revoked or rejected."`
	KeepLost      age   `env:"UMBEL_KEEP_LOST" default:"7d" placeholder:"AGE" help:"Keep unfinished tasks for so long since they were lost or dismissed."`
	KeepEvents    age   `env:"UMBEL_KEEP_EVENTS" default:"3d" placeholder:"AGE" help:"Keep events that no execution shows."`
	KeepWorkers   age   `env:"UMBEL_KEEP_WORKERS" default:"7d" placeholder:"AGE" help:"Keep workers that are offline, from their last sign of life."`
	KeepCommands  age   `env:"UMBEL_KEEP_COMMANDS" default:"90d" placeholder:"AGE" help:"Keep commands of which nothing more will happen. The audit log stays."`
	MaxDBSize     *size `name:"max-db-size" env:"UMBEL_MAX_DB_SIZE" placeholder:"SIZE" help:"Size of the history. Over it, the oldest finished and lost tasks go; active ones do not count. 0: any. By default 2GiB, 512MiB with --data-dir :memory:."`
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
	DataDir string `env:"UMBEL_DATA_DIR" placeholder:"DIR" help:"Where the history is kept; :memory: keeps it until the end. By default $XDG_DATA_HOME/umbel or ~/.local/share/umbel."`
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
		return "", usageError{errors.New("no home directory to keep the history in: " +
			"say where with --data-dir DIR, or --data-dir :memory: to keep it until the end")}
	}
	return filepath.Join(home, ".local", "share", "umbel"), nil
}
