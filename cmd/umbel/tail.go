package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/retry"
	"github.com/umbelhq/umbel/web/mcp"
)

const (
	tailPages   = 5                // of maxPage tasks, that one poll reads at most
	tailLongest = 10 * time.Second // between attempts to reach Umbel
)

// tailCmd prints tasks as they change.
type tailCmd struct {
	remoteFlags

	JSON  bool          `name:"json" help:"Print tasks as in the API, one on each line."`
	Lines int           `default:"10" placeholder:"N" help:"Number of tasks that changed last to begin with."`
	Every time.Duration `default:"1s" help:"Interval of reading. A task that changes twice in it is printed once."`
}

// Run prints tasks that match until ctx ends. If Umbel does not respond after it has, it says so and goes on trying.
func (c *tailCmd) Run(ctx context.Context, s streams, _ *slog.Logger) error {
	remote, err := c.remote()
	if err != nil {
		return err
	}
	if c.Every < 100*time.Millisecond || c.Lines < 0 || c.Lines > maxPage {
		return usageError{fmt.Errorf("--every must be at least 100ms, and --lines 0 to %d", maxPage)}
	}
	t := tail{remote: remote, query: strings.Join(s.args, " "), json: c.JSON, out: s.out, err: s.err}
	if err := t.begin(ctx, c.Lines); err != nil {
		return err
	}
	timer := time.NewTimer(c.Every)
	defer timer.Stop()
	for failed := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		err := t.poll(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil && failed > 0:
			complain(s.err, errors.New("Umbel responds again")) //nolint:staticcheck // a name
			failed = 0
		case err != nil:
			if failed++; failed == 1 {
				complain(s.err, fmt.Errorf("%w; trying again", err))
			}
		}
		if failed > 0 {
			timer.Reset(retry.After(failed, c.Every, max(c.Every, tailLongest)))
		} else {
			timer.Reset(c.Every)
		}
	}
}

// tail knows what the last poll found.
type tail struct {
	remote   mcp.Remote
	query    string
	json     bool
	out, err io.Writer
	seen     map[string]tailTask // by id
	// horizon is the lowest clock of the last poll that did not find all tasks: what is below it is not new.
	horizon int64
}

// tailTask is what is read of a task.
type tailTask struct {
	ID             string
	Name           string
	State          string
	Worker         *string
	Exception      *string
	UpdatedAt      string      `json:"updated_at"`
	RuntimeSeconds float64     `json:"runtime_seconds"`
	Clock          json.Number // a string if it is large
	text           json.RawMessage
}

func (t *tailTask) clock() int64 {
	n, _ := t.Clock.Int64() // 0 if unknown
	return n
}

// is reports whether nothing has changed since o was read.
func (t *tailTask) is(o *tailTask) bool {
	return t.ID == o.ID && t.State == o.State && t.Clock == o.Clock && t.UpdatedAt == o.UpdatedAt
}

// begin prints some of the tasks that changed last.
func (t *tail) begin(ctx context.Context, some int) error {
	found, err := t.changes(ctx, 1)
	if err != nil {
		return err
	}
	return t.print(found[:min(some, len(found))])
}

// poll prints what has changed since the last one.
func (t *tail) poll(ctx context.Context) error {
	changed, err := t.changes(ctx, tailPages)
	if err != nil {
		return err
	}
	if len(changed) == tailPages*maxPage {
		complain(t.err, fmt.Errorf("%d or more tasks have changed at once: the older changes are left out", len(changed)))
	}
	return t.print(changed)
}

// changes returns the tasks that have changed, newest change first, from at most so many pages. It reads on while all of a
// page has changed.
func (t *tail) changes(ctx context.Context, pages int) (changed []tailTask, err error) {
	params := url.Values{"q": {t.query}, "limit": {strconv.Itoa(maxPage)}}
	seen, lowest, whole := map[string]tailTask{}, int64(math.MaxInt64), false
	for range pages {
		var list struct {
			Items []json.RawMessage
			Next  *string
		}
		if err := fetch(ctx, t.remote, "/tasks", params, &list); err != nil {
			return nil, err
		}
		before := len(changed)
		for _, item := range list.Items {
			task := tailTask{text: item}
			if err := json.Unmarshal(item, &task); err != nil {
				return nil, fmt.Errorf("the response of Umbel is not as expected: %w", err)
			}
			old, again := t.seen[task.ID], seen[task.ID]
			if !task.is(&old) && again.ID == "" && task.clock() >= t.horizon {
				changed = append(changed, task)
			}
			seen[task.ID], lowest = task, min(lowest, task.clock())
		}
		if whole = list.Next == nil; whole || len(changed)-before < len(list.Items) {
			break
		}
		params.Set("cursor", *list.Next)
	}
	t.seen = seen
	if !whole {
		t.horizon = max(t.horizon, lowest)
	}
	return changed, nil
}

// print writes tasks, oldest change first.
func (t *tail) print(changed []tailTask) error {
	for _, task := range slices.Backward(changed) {
		line := string(task.text)
		if !t.json {
			line = printable(task.line())
		}
		if _, err := fmt.Fprintln(t.out, line); err != nil {
			return err
		}
	}
	return nil
}

// line is a task for people.
func (t *tailTask) line() string {
	at := t.UpdatedAt
	if moment, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = moment.UTC().Format("15:04:05.000")
	}
	run := ""
	if t.RuntimeSeconds > 0 {
		run = fmt.Sprintf("%.3fs", t.RuntimeSeconds)
	}
	parts := []string{fmt.Sprintf("%s  %-8s %9s", at, t.State, run), cmp.Or(t.Name, "-"), t.ID}
	for _, more := range []*string{t.Worker, t.Exception} {
		if more != nil {
			parts = append(parts, *more)
		}
	}
	return strings.Join(parts, "  ")
}
