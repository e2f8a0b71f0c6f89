package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/umbelhq/umbel/internal/historycopy"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/postgres"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// historyCopyCmd moves a history from a directory to PostgreSQL.
type historyCopyCmd struct {
	Member      string `name:"cluster" placeholder:"NAME" help:"Copy to the schema of one of several clusters."`
	HistoryFile string `env:"UMBEL_HISTORY_FILE" placeholder:"FILE" help:"Read the URL to copy to from a file, such as a mounted secret."`
}

// Run copies, and says each second how far it is.
func (c *historyCopyCmd) Run(ctx context.Context, s streams, log *slog.Logger) (err error) {
	from, url, err := c.places(s.args)
	if err != nil {
		return err
	}
	schema, err := schemaOf(c.Member)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(from, "history.db")); err != nil {
		return fmt.Errorf("there is no history in %s", from)
	}
	source, err := sqlite.Open(ctx, sqlite.Options{Dir: from, Logger: log}) // which keeps a server from writing to it
	if errors.Is(err, history.ErrLocked) {
		return fmt.Errorf("%w: stop the server first", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := postgres.Open(ctx, postgres.Options{URL: url, Schema: schema, Copying: true, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }() //nolint:contextcheck // the lease ends, whatever ctx is
	all, err := source.CountTasks(ctx)
	if err != nil {
		return err
	}
	begin, reported, done := time.Now(), time.Now(), 0
	err = historycopy.Copy(ctx, source, target, func(tasks int) {
		if done = tasks; time.Since(reported) > time.Second {
			reported = time.Now()
			_, _ = fmt.Fprintf(s.err, "copied %d tasks of %d so far\n", tasks, all)
		}
	})
	if errors.Is(err, postgres.ErrNotEmpty) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w. The same command goes on from here", err)
	}
	_, err = fmt.Fprintf(s.out, "copied %d tasks and all the rest in %v. Start umbel serve with --history and that URL\n",
		done, time.Since(begin).Round(time.Second))
	return err
}

// places returns the directory and the address of PostgreSQL.
func (c *historyCopyCmd) places(args []string) (from, url string, err error) {
	if len(args) == 0 || len(args) > 2 {
		return "", "", usageError{errors.New("history copy needs the directory to copy from, and the URL to copy to")}
	}
	if len(args) == 2 {
		url = args[1]
	}
	url, source, err := secret("to", url, c.HistoryFile)
	if err == nil && !postgres.IsURL(url) {
		err = usageError{errors.New(source + ": the URL to copy to begins with postgres://")}
	}
	return args[0], url, err
}
