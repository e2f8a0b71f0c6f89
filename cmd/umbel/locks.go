package main

import (
	"fmt"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
)

// lockFlags say where applications keep the locks of tasks that run once.
type lockFlags struct {
	LocksURL      string        `name:"locks-url" env:"UMBEL_LOCKS_URL" placeholder:"URL" help:"Redis with the locks of tasks that run once: redis://, rediss://, redis+socket:// or sentinel://; none for no locks. By default the broker, or else the result backend, if it is Redis."`
	LocksURLFile  string        `name:"locks-url-file" env:"UMBEL_LOCKS_URL_FILE" placeholder:"FILE" help:"Read the URL of the locks from a file."`
	LocksMaster   string        `env:"UMBEL_LOCKS_MASTER" placeholder:"NAME" help:"Name of the master of the locks' sentinels."`
	LocksPattern  []string      `env:"UMBEL_LOCKS_PATTERN" placeholder:"GLOB" help:"Keys that are locks, if not lock:celery:exec:*, qo_*, celery_singleton_* and SINGLETONLOCK_*. Repeatable."`
	LockTTL       time.Duration `name:"locks-ttl" env:"UMBEL_LOCKS_TTL" default:"10m" help:"TTL that applications give to lock:celery:exec:* while a task runs, for the age of locks. 0 if it varies."`
	CompletionTTL time.Duration `name:"locks-completion-ttl" env:"UMBEL_LOCKS_COMPLETION_TTL" default:"24h" help:"The same once the task has completed."`
}

// locks sets the flags in o. Its error names the flag that is wrong.
func (f *lockFlags) locks(o *dashboard.Options) error {
	url, source, err := secret("--locks-url", f.LocksURL, f.LocksURLFile)
	if err != nil {
		return err
	}
	o.LocksURL, o.LocksMaster = url, f.LocksMaster
	o.LockTTL, o.CompletionTTL = orUnknown(f.LockTTL), orUnknown(f.CompletionTTL)
	for _, step := range []step{{source, func() {}}, {"--locks-pattern", func() { o.LocksPatterns = f.LocksPattern }}} {
		step.set()
		s, err := dashboard.Locks(*o)
		if err != nil {
			return usageError{fmt.Errorf("%s: %w", step.flag, err)}
		}
		if s != nil {
			if err := s.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// orUnknown returns a TTL, negative if it is unknown.
func orUnknown(ttl time.Duration) time.Duration {
	if ttl == 0 {
		return -1
	}
	return ttl
}
