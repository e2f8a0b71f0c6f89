package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/api"
	"github.com/umbelhq/umbel/web/query"
)

// outboxStatsCmd sums up the outbox, beside the server that uses it.
type outboxStatsCmd struct {
	memberFlags
	JSON bool `env:"UMBEL_JSON" help:"Print JSON as in the API."`
}

// Run prints the sums.
func (c *outboxStatsCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	return c.read(ctx, log, func(db history.Store) error {
		stats, err := db.OutboxStats(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return json.NewEncoder(s.out).Encode(api.FromOutbox(stats))
		}
		return printStats(s.out, stats, time.Now())
	})
}

func printStats(out io.Writer, stats history.OutboxStats, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range history.CommandStates() {
		fmt.Fprintf(w, "%s\t%d\n", s, stats.States[s])
	}
	oldest := "none"
	if !stats.OldestPending.IsZero() {
		oldest = fmt.Sprintf("%s (%v ago)", moment(stats.OldestPending), now.Sub(stats.OldestPending).Truncate(time.Second))
	}
	fmt.Fprintf(w, "\noldest pending\t%s\ndead letters\t%d\nof other versions\t%d\n", oldest, stats.DeadLetters, stats.OtherSchema)
	if len(stats.TopErrors) > 0 {
		fmt.Fprint(w, "\ntop failures\n")
	}
	for _, f := range stats.TopErrors {
		fmt.Fprintf(w, "%d\t%s\n", f.N, printable(f.Error))
	}
	return w.Flush()
}

// outboxAuditCmd reads the audit log.
type outboxAuditCmd struct {
	memberFlags
	Verify  bool   `env:"UMBEL_VERIFY" help:"Verify that no record was modified or removed."`
	Limit   int    `env:"UMBEL_LIMIT" default:"50" placeholder:"N" help:"Maximum number of records; 0 for all."`
	Kind    string `env:"UMBEL_KIND" placeholder:"KIND" help:"Only records of a kind: action, login, logout, token, access, export, rule or view."`
	Outcome string `env:"UMBEL_OUTCOME" placeholder:"OUTCOME" help:"Only records with an outcome: accepted, refused or failed."`
	Actor   string `env:"UMBEL_ACTOR" placeholder:"USER" help:"Only records of a user."`
	From    string `env:"UMBEL_FROM" placeholder:"TIME" help:"Only records since a time, such as 2026-11-21T10:00:00Z or -24h."`
	To      string `env:"UMBEL_TO" placeholder:"TIME" help:"Only records before a time."`
	Format  string `env:"UMBEL_FORMAT" enum:"table,csv,jsonl" default:"table" help:"Format: table, csv or jsonl."`
}

// maxRecords is how many records are asked for at once.
const maxRecords = 500

// Run prints records, or checks all of them.
func (c *outboxAuditCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	if c.Limit < 0 {
		return usageError{fmt.Errorf("--limit %d is less than 0", c.Limit)}
	}
	return c.read(ctx, log, func(db history.Store) error {
		if c.Verify {
			return verify(ctx, s.out, db)
		}
		return c.print(ctx, s.out, db)
	})
}

// verify says whether the log is as it was written, and what its last hash is.
func verify(ctx context.Context, out io.Writer, db history.Store) error {
	bad, err := db.VerifyAudit(ctx)
	if err != nil {
		return err
	}
	if bad > 0 {
		return fmt.Errorf("record %d of the audit log was changed or removed; those before it are as they were written", bad)
	}
	last, _, err := db.AuditLog(ctx, history.AuditFilter{Limit: 1})
	if err != nil {
		return err
	}
	if len(last) == 0 {
		_, err = fmt.Fprintln(out, "The audit log is empty.")
		return err
	}
	_, err = fmt.Fprintf(out, "All records up to %d are as they were written. The last one has the hash %s\n", last[0].ID, last[0].Hash)
	return err
}

// print writes records, newest first.
func (c *outboxAuditCmd) print(ctx context.Context, out io.Writer, db history.Store) error {
	f, err := c.filter(time.Now())
	if err != nil {
		return usageError{err}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	write, flush := func(a history.AuditRecord) error {
		_, err := fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\n", a.ID, moment(a.At), printable(a.Actor), printable(a.RemoteAddr),
			printable(a.Action), printable(a.Target), cmp.Or(a.Outcome, history.AuditAccepted), a.FirstCommand, a.Commands)
		return err
	}, w.Flush
	if c.Format == "table" {
		fmt.Fprintln(w, "RECORD\tAT\tWHO\tFROM\tACTION\tTARGET\tOUTCOME\tREQUEST\tCOMMANDS")
	} else {
		e := api.NewAuditEncoder(out, c.Format)
		write, flush = e.Record, e.Flush
	}
	left := c.Limit
	for before := int64(0); ; {
		page := maxRecords
		if c.Limit > 0 {
			page = min(page, left)
		}
		f.Before, f.Limit = before, page
		list, next, err := db.AuditLog(ctx, f)
		if err != nil {
			return err
		}
		for _, a := range list {
			if err := write(a); err != nil {
				return err
			}
		}
		left -= len(list)
		if before = next; next == 0 || c.Limit > 0 && left <= 0 {
			return flush()
		}
	}
}

// filter returns which records are printed.
func (c *outboxAuditCmd) filter(now time.Time) (history.AuditFilter, error) {
	v := url.Values{}
	for name, value := range map[string]string{"kind": c.Kind, "outcome": c.Outcome, "actor": c.Actor, "from": c.From, "to": c.To} {
		v.Set(name, value)
	}
	q, err := query.ParseAudit(v, now)
	if err != nil {
		return history.AuditFilter{}, fmt.Errorf("--%w", err)
	}
	return q.Filter(), nil
}
