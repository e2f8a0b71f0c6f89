// Growth writes histories of millions of tasks, measures how long what people ask of them takes, and draws how that grows with them.
//
//	go run ./internal/growth [-dir DIR] [-rounds N] [-plot FILE.svg] MILLIONS...
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel/internal/longhistory"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to stop
	}
}

// results is a file in the directory of the histories with what was measured last, by millions of tasks.
const results = "results.json"

func run(ctx context.Context) error {
	dir := flag.String("dir", "", "directory that keeps the histories; umbel-growth in the user's cache if empty")
	rounds := flag.Int("rounds", 40, "how often each query is asked")
	plot := flag.String("plot", "", "SVG file to draw")
	flag.Parse()
	if *dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		*dir = filepath.Join(cache, "umbel-growth")
	}
	measured := make(map[int]report)
	saved, err := os.ReadFile(filepath.Join(*dir, results))
	if err == nil {
		err = json.Unmarshal(saved, &measured)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, arg := range flag.Args() {
		millions, err := strconv.Atoi(arg)
		if err != nil || millions < 1 {
			return fmt.Errorf("%q is no number of millions", arg)
		}
		if measured[millions], err = grow(ctx, filepath.Join(*dir, arg), longhistory.Tasks(millions*1_000_000), *rounds); err != nil {
			return err
		}
		if err := save(filepath.Join(*dir, results), measured); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(os.Stdout, table(measured)); err != nil || *plot == "" {
		return err
	}
	return os.WriteFile(*plot, []byte(draw(measured)), 0o600)
}

func save(path string, measured map[int]report) error {
	b, err := json.MarshalIndent(measured, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o600)
}

// grow builds a history unless it is there, and measures it.
func grow(ctx context.Context, dir string, n longhistory.Tasks, rounds int) (report, error) {
	progress := func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
	}
	const seldom = 50_000
	err := longhistory.Build(ctx, dir, n, func(what string, done int) {
		if done%seldom == 0 {
			progress("%d million tasks: %d %s", n/1_000_000, done, what)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("build a history in %s: %w", dir, err)
	}
	m := measurement{dir: dir, tasks: n, rounds: rounds, report: make(report)}
	for _, part := range []struct {
		what    string
		measure func(context.Context) error
	}{
		{"restart", m.restart}, {"queries", m.queries}, {"pages of the history", m.pages}, {"prune", m.prune},
	} {
		progress("%d million tasks: %s", n/1_000_000, part.what)
		if err := part.measure(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", part.what, err)
		}
	}
	return m.report, nil
}

// report says what was measured, by its name.
type report map[string]figure

// figure is what was measured of one thing.
type figure struct {
	Group    string
	P50, P95 float64 // ms, or what Unit says
	Unit     string  `json:",omitempty"`
}

// Groups of figures, in the order of plots, with their targets.
func groups() []group {
	return []group{
		{"list", 5},
		{"filters", 50},
		{"text search", 150},
		{"counts", 0},
		{"task page", 5},
		{"failures", 0},
		{"duplicates", 0},
		{"charts", 0},
		{"restart", 3000},
		{"prune", 0},
		{"disk", 0},
	}
}

type group struct {
	name   string
	target float64 // of the 95th percentile, 0 for none
}

// of returns the figures of a group in a report by name, the greatest median first.
func (g group) of(r report) (names []string) {
	for name, f := range r {
		if f.Group == g.name {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(r[b].P50, r[a].P50), cmp.Compare(a, b)) })
	return names
}
