package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
)

// pruneCmd removes old history while no server does.
type pruneCmd struct {
	memberFlags
	keepFlags
	DryRun bool `env:"UMBEL_DRY_RUN" help:"Only print what would be removed. The server may be running."`
}

// Run removes what the rules say, or tells what that would be.
func (c *pruneCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	p, err := c.place()
	if err != nil {
		return err
	}
	rules := c.rules(p.dir)
	// Reading comes first in any case: it makes no history where there is none.
	err = p.read(ctx, rules, log, func(db history.Store) error {
		if c.DryRun {
			return c.plan(ctx, s.out, db, time.Now())
		}
		return nil
	})
	if err != nil || c.DryRun {
		return err
	}
	db, err := p.open(ctx, rules, false, log)
	if errors.Is(err, history.ErrLocked) {
		return fmt.Errorf("%w. A running server prunes by itself; --dry-run says what it will remove", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(c.prune(ctx, s, db, time.Now()), db.Close())
}

// plan prints what would go.
func (c *pruneCmd) plan(ctx context.Context, w io.Writer, db history.Store, now time.Time) error {
	p, err := db.PlanPrune(ctx, now)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "tasks kept            %d\nof them active        %s\noldest ended          %s\nbytes in use          %s\n\n"+
		"succeeded, too old    %s\nfailed, too old       %s\nlost, too old         %s\nto be thinned         %s\nover --max-db-size    %s\n"+
		"would free            about %s\n",
		p.Tasks, atLeast(p.Active), moment(p.Oldest), inUnits(p.UsedBytes),
		atLeast(p.Succeeded), atLeast(p.Failed), atLeast(p.Lost), atLeast(p.Events), about(p.Size), inUnits(p.Bytes))
	return err
}

// prune removes what is too old, and says each second how far it is.
func (c *pruneCmd) prune(ctx context.Context, s streams, db history.Store, now time.Time) error {
	var tasks, thinned int
	var freed int64
	reported := time.Now()
	err := db.Prune(ctx, now, func(p history.Pruned) {
		tasks, thinned, freed = tasks+len(p.Tasks), thinned+p.Events, freed+p.Bytes
		if time.Since(reported) > time.Second {
			reported = time.Now()
			_, _ = fmt.Fprintf(s.err, "removed %d tasks, thinned %d, freed %s so far\n", tasks, thinned, inUnits(freed))
		}
	})
	if _, out := fmt.Fprintf(s.out, "removed %d tasks, thinned %d, freed %s\n", tasks, thinned, inUnits(freed)); err == nil {
		err = out
	}
	return err
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.UTC().Format(time.RFC3339)
}

func atLeast(c history.Count) string {
	if c.Exact {
		return strconv.Itoa(c.N)
	}
	return fmt.Sprintf("more than %d", c.N)
}

func about(c history.Count) string {
	if c.Exact {
		return strconv.Itoa(c.N)
	}
	return fmt.Sprintf("about %d", c.N)
}

// inUnits writes a size in the units that flags take.
func inUnits(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
}
