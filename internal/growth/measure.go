package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/internal/longhistory"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	pageSize = 50
	file     = "history.db"
)

// measurement measures the history of a directory.
type measurement struct {
	dir    string
	tasks  longhistory.Tasks
	rounds int
	report report
}

// time calls f a number of times and reports how long it took.
func (m *measurement) time(group, name string, rounds int, f func(i int) error) error {
	took := make([]time.Duration, rounds)
	for i := range took {
		begin := time.Now()
		if err := f(i); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took[i] = time.Since(begin)
	}
	slices.Sort(took)
	ms := func(p int) float64 { return float64(took[(len(took)-1)*p/100].Microseconds()) / 1000 }
	m.report[name] = figure{Group: group, P50: ms(50), P95: ms(95)}
	return nil
}

// restart starts a dashboard until it is ready. Its file is in the cache of the system, as after a restart.
func (m *measurement) restart(ctx context.Context) error {
	if err := warm(filepath.Join(m.dir, file)); err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(m.dir, file))
	if err != nil {
		return err
	}
	m.report["disk"] = figure{Group: "disk", P50: float64(info.Size()) / 1e6, P95: float64(info.Size()) / 1e6, Unit: "MB"}
	return m.time("restart", "restart until ready", 5, func(int) error {
		d, err := dashboard.New(dashboard.Options{ //nolint:contextcheck // as umbel serve does
			Broker: inproc.New(inproc.Options{}), DataDir: m.dir, Retention: &history.RetentionRules{}, ReadOnly: true, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		poll := time.NewTicker(time.Millisecond)
		defer poll.Stop()
		for {
			w := httptest.NewRecorder()
			d.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/readyz", nil))
			if w.Code == http.StatusOK {
				cancel()
				return errors.Join(<-ended, d.Close())
			}
			select {
			case <-poll.C:
			case err := <-ended:
				return errors.Join(err, d.Close(), errors.New("it ended"))
			}
		}
	})
}

// warm reads a file, so that the system has it in its cache as far as it fits.
func warm(path string) error {
	f, err := os.Open(path) //nolint:gosec // what was built
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, f)
	return errors.Join(err, f.Close())
}

// with calls f with the open history.
func (m *measurement) with(ctx context.Context, f func(d *sqlite.DB) error) error {
	d, err := sqlite.Open(ctx, sqlite.Options{Dir: m.dir})
	if err != nil {
		return err
	}
	return errors.Join(f(d), d.Close())
}

// queries asks for pages of tasks, and counts those that match.
func (m *measurement) queries(ctx context.Context) error {
	return m.with(ctx, func(d *sqlite.DB) error {
		middle, err := d.Tasks(ctx, history.TaskRequest{Query: query.New(query.Equal(query.ID, m.tasks.ID(int(m.tasks)/2))), Limit: 1, Now: longhistory.Now()})
		if err != nil || len(middle.Tasks) != 1 {
			return fmt.Errorf("find the task in the middle: %d found, %w", len(middle.Tasks), err)
		}
		for _, q := range m.tasks.Queries() {
			ask := func(i int) (r history.TaskRequest, err error) {
				r = history.TaskRequest{Sort: q.Sort, Limit: pageSize, Now: longhistory.Now()}
				if q.Middle {
					r.From = &state.Position{Stamp: middle.Tasks[0].Stamp, ID: middle.Tasks[0].ID}
				}
				r.Query, err = query.Parse(q.Query(i))
				return r, err
			}
			of := map[longhistory.Group]string{longhistory.List: "list", longhistory.Filter: "filters", longhistory.Text: "text search"}[q.Group]
			err := m.time(of, q.Name, m.rounds, func(i int) error {
				r, err := ask(i)
				if err != nil {
					return err
				}
				page, err := d.Tasks(ctx, r)
				if err == nil && len(page.Tasks) < q.Want && page.Searched == 0 {
					err = fmt.Errorf("%d tasks, want %d", len(page.Tasks), q.Want)
				}
				return err
			})
			if err != nil {
				return err
			}
			err = m.time("counts", "count "+q.Name, min(m.rounds, 20), func(i int) error {
				r, err := ask(i)
				if err != nil {
					return err
				}
				_, err = d.Count(ctx, r.Query, r.Now, 10_000)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// pages asks for what other pages show.
func (m *measurement) pages(ctx context.Context) error {
	now := longhistory.Now()
	return m.with(ctx, func(d *sqlite.DB) error {
		var reader state.Reader
		return errors.Join(
			m.time("task page", "task", m.rounds, func(i int) error {
				id := m.tasks.ID(i * 7919 % int(m.tasks))
				events, err := d.Task(ctx, id)
				if err != nil {
					return err
				}
				if _, _, err := reader.TaskEvents(id, events); err != nil {
					return err
				}
				_, err = d.Children(ctx, id, 1000)
				return err
			}),
			m.time("failures", "groups of failures", m.rounds, func(int) error {
				page, err := d.FailureGroups(ctx, history.FailureRequest{Limit: pageSize, Now: now})
				if err == nil && len(page.Groups) == 0 {
					err = errors.New("there are none")
				}
				return err
			}),
			m.time("duplicates", "groups of duplicates", m.rounds, func(int) error {
				page, err := d.DuplicateGroups(ctx, history.DuplicateRequest{Limit: pageSize, Tasks: 10})
				if err == nil && len(page.Groups) < pageSize {
					err = fmt.Errorf("%d groups, want %d", len(page.Groups), pageSize)
				}
				return err
			}),
			m.time("charts", "a day", m.rounds, m.series(ctx, d, 24*time.Hour, rollup.Request{})),
			m.time("charts", "a week", m.rounds, m.series(ctx, d, 7*24*time.Hour, rollup.Request{})),
			m.time("charts", "a day by name", m.rounds, m.series(ctx, d, 24*time.Hour, rollup.Request{GroupBy: rollup.ByName})),
			m.time("charts", "a day of a name", m.rounds, m.series(ctx, d, 24*time.Hour, rollup.Request{Query: query.New(query.Equal(query.Name, m.tasks.Name(1)))})),
		)
	})
}

// series reads a chart of the last span.
func (m *measurement) series(ctx context.Context, d *sqlite.DB, span time.Duration, r rollup.Request) func(int) error {
	r.Now = longhistory.Now()
	r.From, r.To = r.Now.Add(-span), r.Now
	return func(int) error {
		_, err := rollup.Read(ctx, d, d, r)
		return err
	}
}

// pruned is how many tasks are removed.
const pruned = 20_000

// prune removes the oldest tasks of a copy.
func (m *measurement) prune(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp(m.dir, "prune")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := copyFile(filepath.Join(dir, file), filepath.Join(m.dir, file)); err != nil {
		return err
	}
	now := longhistory.Now()
	age := now.Sub(time.UnixMicro(m.tasks.Micros(pruned)))
	d, err := sqlite.Open(ctx, sqlite.Options{Dir: dir, Rules: history.RetentionRules{Succeeded: age, Failed: age}})
	if err != nil {
		return err
	}
	removed := 0
	err = m.time("prune", fmt.Sprintf("removing %d tasks", pruned), 1, func(int) error {
		return d.Prune(ctx, now, func(p history.Pruned) { removed += len(p.Tasks) })
	})
	if err == nil && (removed < pruned*9/10 || removed > pruned) {
		err = fmt.Errorf("%d tasks were removed, want about %d", removed, pruned)
	}
	return errors.Join(err, d.Close())
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from) //nolint:gosec // what was built
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(to) //nolint:gosec // in a directory of our own
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
