package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// repairCmd takes over what can be read of damaged histories, while no server runs.
type repairCmd struct {
	historyFlags
}

// Run repairs one file, or all that were set aside.
func (c *repairCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	if url != "" {
		return usageError{errors.New("repair is for files: restore a damaged PostgreSQL from a backup, with its own tools")}
	}
	dir, err := c.onDisk()
	if err != nil {
		return err
	}
	file := strings.Join(s.args, "")
	if err := check(dir, file); err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, sqlite.Options{Dir: dir, ReplaceDamaged: true, Logger: log})
	if errors.Is(err, history.ErrLocked) {
		return fmt.Errorf("%w. Stop the server first", err)
	}
	if err != nil {
		return err
	}
	if file != "" {
		return errors.Join(repair(ctx, s, db, file), db.Close())
	}
	return errors.Join(repairAll(ctx, s, dir, db), db.Close())
}

// check refuses what cannot be meant, before anything is made.
func check(dir, name string) error {
	if name == "" {
		if _, err := os.Stat(dir); err != nil {
			return fmt.Errorf("there is no history in %s: set --data-dir", dir)
		}
		return nil
	}
	file, err := os.Stat(name)
	if err != nil {
		return err
	}
	if own, err := os.Stat(filepath.Join(dir, "history.db")); err == nil && os.SameFile(file, own) {
		return usageError{fmt.Errorf("%s is the history in use: leave the file out, and it is set aside if it is damaged", name)}
	}
	return nil
}

// repairAll repairs the files that were set aside.
func repairAll(ctx context.Context, s streams, dir string, db *sqlite.DB) error {
	files, err := sqlite.DamagedFiles(dir)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		_, err := fmt.Fprintf(s.out, "no damaged history in %s\n", dir)
		return err
	}
	for _, file := range files {
		if err := repair(ctx, s, db, file); err != nil {
			return err
		}
		to, err := sqlite.MarkRepaired(file)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(s.out, "the damaged file is kept as %s\n", to); err != nil {
			return err
		}
	}
	return nil
}

// repair takes over what can be read of a file, and reports progress once a second.
func repair(ctx context.Context, s streams, db *sqlite.DB, file string) error {
	reported := time.Now()
	done, err := db.Recover(ctx, file, func(now sqlite.Recovered) {
		if time.Since(reported) > time.Second {
			reported = time.Now()
			_, _ = fmt.Fprintf(s.err, "%d tasks so far\n", now.Tasks)
		}
	})
	return errors.Join(err, summary(s.out, file, done))
}

// summary tells what was taken over and what was not.
func summary(w io.Writer, file string, done sqlite.Recovered) error {
	lines := []string{"from " + file, fmt.Sprintf("  tasks           %d added", done.Tasks)}
	for _, table := range slices.Sorted(maps.Keys(done.Rows)) {
		if n := done.Rows[table]; n > 0 {
			lines = append(lines, fmt.Sprintf("  %-15s %d rows added", table, n))
		}
	}
	if len(done.Incomplete) > 0 {
		lines = append(lines, "not all could be read of: "+strings.Join(done.Incomplete, ", "))
	}
	if done.Unreadable > 0 {
		lines = append(lines, fmt.Sprintf("%d rows held what is no event, and are left out", done.Unreadable))
	}
	if len(done.Skipped) > 0 {
		lines = append(lines, "left in the file, since the history has some of its own: "+strings.Join(done.Skipped, ", "))
	}
	if len(done.Incomplete) == 0 && done.Unreadable == 0 && len(done.Skipped) == 0 {
		lines = append(lines, "nothing is missing")
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}
