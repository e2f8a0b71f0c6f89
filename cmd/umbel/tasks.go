package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// maxPage is how many tasks are asked for at once.
const maxPage = 500

// tasksCmd lists tasks of the history.
type tasksCmd struct {
	memberFlags
	Sort   string `env:"UMBEL_SORT" placeholder:"FIELD" help:"sent, received, started, finished, wait, run or retries, with a leading - for descending order. By default the newest change first."`
	Limit  int    `env:"UMBEL_LIMIT" default:"50" placeholder:"N" help:"Maximum number of tasks; 0 for all."`
	Format string `env:"UMBEL_FORMAT" enum:"table,json,csv" default:"table" help:"table, json (one task per line, as in the API) or csv."`
}

// Run prints the tasks that match. The history is only read, beside the server that writes it.
func (c *tasksCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	r, err := c.request(strings.Join(s.args, " "), time.Now())
	if err != nil {
		return usageError{err}
	}
	return c.read(ctx, log, func(db history.Store) error {
		var err error
		if r.Query, err = r.Query.Within(c.Member); err == nil {
			r.Query, err = view.ResolveCauses(ctx, view.Stored{TaskReader: db}, r.Query, r.Now)
		}
		if wrong, ok := errors.AsType[query.UnresolvedError](err); ok {
			text := strings.Join(s.args, " ")
			return usageError{errors.New(marked(text, wrong.In(text)))}
		}
		if err != nil {
			return err
		}
		more, err := c.print(s.out, found(ctx, db, r))
		if more && err == nil {
			_, err = fmt.Fprintf(s.err, "The first %d tasks. There are more: --limit 0 prints all.\n", c.Limit)
		}
		return err
	})
}

// request reads the query text and the flags.
func (c *tasksCmd) request(text string, now time.Time) (history.TaskRequest, error) {
	q, err := query.Parse(text)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return history.TaskRequest{}, errors.New(marked(text, wrong))
	}
	sort, ok := query.ParseSort(c.Sort)
	if !ok {
		return history.TaskRequest{}, fmt.Errorf("--sort %s: tasks cannot be sorted by that", c.Sort)
	}
	if c.Limit < 0 {
		return history.TaskRequest{}, fmt.Errorf("--limit %d is less than 0", c.Limit)
	}
	page := maxPage
	if c.Limit > 0 {
		page = min(page, c.Limit+1)
	}
	return history.TaskRequest{Query: q, Sort: sort, Limit: page, Now: now}, err
}

// marked says what is wrong with a query, and shows where.
func marked(text string, wrong *query.Error) string {
	at := min(wrong.Offset, len(text))
	token := text[at:min(at+wrong.Length, len(text))]
	return fmt.Sprintf("%s\n  %s\n  %s%s", wrong.Message, printable(text),
		strings.Repeat(" ", utf8.RuneCountInString(text[:at])), strings.Repeat("^", max(1, utf8.RuneCountInString(token))))
}

// printable is text without what would move the cursor of a terminal or do worse, character by character.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

// found yields the tasks that match, and at last an error if there was one.
func found(ctx context.Context, db history.TaskReader, r history.TaskRequest) iter.Seq2[*state.Task, error] {
	return func(yield func(*state.Task, error) bool) {
		for {
			page, err := db.Tasks(ctx, r)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Tasks {
				if !yield(&page.Tasks[i], nil) {
					return
				}
			}
			if r.From = page.Next; r.From == nil {
				return
			}
		}
	}
}

// print writes tasks in the format that was asked for. It reports whether there are more than the limit.
func (c *tasksCmd) print(out io.Writer, tasks iter.Seq2[*state.Task, error]) (more bool, err error) {
	w := newWriter(c.Format, out)
	n := 0
	for t, err := range tasks {
		if err != nil {
			return false, err
		}
		if n++; c.Limit > 0 && n > c.Limit {
			more = true
			break
		}
		if err := w.write(t); err != nil {
			return false, err
		}
	}
	return more, w.flush()
}
