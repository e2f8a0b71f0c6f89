package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// redactCmd redacts what was stored before a rule existed.
type redactCmd struct {
	memberFlags
	redactFlags
	Rewrite bool `help:"Redact the history. It asks before it does."`
	Yes     bool `help:"Do not ask."`
}

// Run counts what the rules match in the history, and redacts it if that is confirmed.
func (c *redactCmd) Run(ctx context.Context, s streams, log *slog.Logger) error {
	p, err := c.place()
	if err != nil {
		return err
	}
	rules, err := c.options()
	if err != nil {
		return err
	}
	edit, err := dashboard.Edit(rules)
	if err != nil {
		return err
	}
	plan, err := c.plan(ctx, s, p, edit, log)
	if err != nil || !c.Rewrite {
		return err
	}
	if !c.Yes {
		if err := ask(s, plan); err != nil {
			return err
		}
	}
	db, err := p.open(ctx, history.RetentionRules{}, false, log)
	if errors.Is(err, history.ErrLocked) {
		return fmt.Errorf("%w. Stop the server first", err)
	}
	if err != nil {
		return err
	}
	return errors.Join(c.rewrite(ctx, s, p, db, edit), db.Close())
}

// plan prints what would change.
func (c *redactCmd) plan(ctx context.Context, s streams, p place, edit history.Edit, log *slog.Logger) (plan history.Edited, err error) {
	err = p.read(ctx, history.RetentionRules{}, log, func(db history.Store) (err error) {
		if plan, err = editor(db).PlanEdit(ctx, edit, each(time.Second, s.err, "examined")); err != nil {
			return err
		}
		return writeEdited(s.out, "to redact", plan)
	})
	return plan, err
}

// editor returns a history as both engines edit it.
func editor(db history.Store) history.Editor { return db.(history.Editor) } //nolint:forcetypeassert // both do

// rewrite redacts the history, and tells of files that it does not reach.
func (c *redactCmd) rewrite(ctx context.Context, s streams, p place, db history.Store, edit history.Edit) error {
	by := history.AuditRecord{
		At: time.Now(), Kind: history.AuditRule, Outcome: history.AuditAccepted, Actor: "command line", Action: "redact history",
	}
	done, err := editor(db).Edit(ctx, edit, by, each(time.Second, s.err, "redacted"))
	if err != nil {
		return fmt.Errorf("%w. What was redacted stays so: start the command again to go on", err)
	}
	if err := writeEdited(s.out, "redacted", done); err != nil {
		return err
	}
	if p.dir == "" {
		return nil
	}
	damaged, err := sqlite.DamagedFiles(p.dir)
	if err == nil && len(damaged) > 0 {
		_, err = fmt.Fprintf(s.out, "not redacted, remove them: %s\n", strings.Join(damaged, ", "))
	}
	return err
}

// ask returns an error unless the user confirms.
func ask(s streams, plan history.Edited) error {
	_, err := fmt.Fprintf(s.err, "Redact %d rows for good? There is no way back. Type yes: ", plan.Changed())
	if err != nil {
		return err
	}
	line, err := bufio.NewReader(s.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != "yes" {
		return errors.New("not confirmed: nothing was changed")
	}
	return nil
}

// each returns a function that writes how far a run is, at most once in a pause.
func each(pause time.Duration, w io.Writer, verb string) func(history.Edited) {
	reported := time.Now()
	return func(e history.Edited) {
		if time.Since(reported) > pause {
			reported = time.Now()
			_, _ = fmt.Fprintf(w, "%s %d of %d rows\n", verb, min(e.Examined, e.Rows), e.Rows)
		}
	}
}

// writeEdited prints how much of what there is.
func writeEdited(w io.Writer, verb string, e history.Edited) error {
	_, err := fmt.Fprintf(w, "%s\n  tasks           %d\n  journal         %d entries\n  workers         %d\n  snapshots       %d\n"+
		"  commands        %d\n  failure groups  %d\n  saved views     %d\n  marks           %d\n  alerts          %d\n  audit log       %d records\n",
		verb, e.Tasks, e.Journal, e.Workers, e.Snapshots, e.Commands, e.Failures, e.Views, e.Marks, e.Alerts, e.Audit)
	if err == nil && e.Waiting > 0 {
		first := strings.Trim(fmt.Sprint(e.WaitingIDs), "[]")
		_, err = fmt.Fprintf(w, "%d commands can still be sent and keep their arguments. Discard them on Outbox, or have them sent, and start this "+
			"command again. The first ones: %s\n", e.Waiting, first)
	}
	if err == nil && e.Unreadable > 0 {
		_, err = fmt.Fprintf(w, "%d rows are unreadable and stay as they are: see umbel repair\n", e.Unreadable)
	}
	return err
}
