package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/query"
)

// Bounds of what is asked for.
const (
	maxName = 100
	maxMute = 90 * 24 * time.Hour
	// Week is how long a backtest goes back.
	Week = 7 * 24 * time.Hour
)

// Rule is a stored rule.
type Rule struct {
	history.AlertRule

	Rule    alert.Rule
	Invalid string // why its definition cannot be read, empty if it can
}

// Rules returns all rules, by name.
func (s *Service) Rules(ctx context.Context) ([]Rule, error) {
	stored, err := s.o.Store.AlertRules(ctx)
	if err != nil {
		return nil, err
	}
	rules := make([]Rule, len(stored))
	for i, r := range stored {
		rules[i].AlertRule = r
		err := json.Unmarshal(r.Definition, &rules[i].Rule)
		if err == nil {
			rules[i].Rule, err = rules[i].Rule.Check()
		}
		if err != nil { // written by another version
			rules[i].Invalid = err.Error()
		}
	}
	return rules, nil
}

// Find returns one rule, history.ErrNotFound if there is none.
func (s *Service) Find(ctx context.Context, id int64) (Rule, error) {
	rules, err := s.Rules(ctx)
	if err != nil {
		return Rule{}, err
	}
	for _, r := range rules {
		if r.ID == id {
			return r, nil
		}
	}
	return Rule{}, history.ErrNotFound
}

// Save creates or replaces a rule. The error is an *alert.Error, or one of history.Alerts.
func (s *Service) Save(ctx context.Context, r Rule, actor string) (Rule, error) {
	rule, err := r.Rule.Check()
	if err != nil {
		return r, err
	}
	r.Rule, r.Name = rule, strings.TrimSpace(r.Name)
	if r.Name == "" || len(r.Name) > maxName || strings.ContainsFunc(r.Name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return r, &alert.Error{Field: "name", Message: fmt.Sprintf("A rule has a name of 1 to %d printable characters.", maxName)}
	}
	slices.Sort(r.Receivers)
	r.Receivers = slices.Compact(r.Receivers)
	for _, name := range r.Receivers {
		if !slices.ContainsFunc(s.o.Receivers, func(v receivers.Receiver) bool { return v.Name == name }) {
			return r, &alert.Error{Field: "receivers", Message: fmt.Sprintf("No receiver has the name %q.", name)}
		}
	}
	if r.Definition, err = json.Marshal(rule); err != nil {
		return r, err
	}
	r.SavedAt, r.SavedBy = s.o.Now(), actor
	r.AlertRule, err = s.o.Store.SaveAlertRule(ctx, r.AlertRule)
	if errors.Is(err, history.ErrTooManyAlertRules) {
		err = &alert.Error{Message: fmt.Sprintf("There are %d rules, which is the most: delete one first.", history.MaxAlertRules)}
	}
	if err != nil {
		return r, err
	}
	return r, s.refresh(ctx)
}

// Delete removes a rule. Its firings end, and nobody is told.
func (s *Service) Delete(ctx context.Context, id int64) error {
	if err := s.o.Store.DeleteAlertRule(ctx, id, s.o.Now()); err != nil {
		return err
	}
	return s.refresh(ctx)
}

// Mute tells nobody of a rule for a while from now; 0 ends that. What still fires then is told.
func (s *Service) Mute(ctx context.Context, id int64, length time.Duration, actor string) error {
	var until time.Time
	switch {
	case length < 0 || length > maxMute:
		return &alert.Error{Field: "for_seconds", Message: "A rule is muted for at most 90 days."}
	case length > 0:
		until = s.o.Now().Add(length)
	default:
		actor = ""
	}
	if err := s.o.Store.MuteAlertRule(ctx, id, until, actor); err != nil {
		return err
	}
	return s.refresh(ctx)
}

// Acknowledge records who looks after a firing.
func (s *Service) Acknowledge(ctx context.Context, id int64, actor string) error {
	if err := s.o.Store.AcknowledgeAlert(ctx, id, s.o.Now(), actor); err != nil {
		return err
	}
	return s.refresh(ctx)
}

// Status is what pages show of alerts.
type Status struct {
	Open  []history.AlertFiring // newest first
	Rules []Rule
	Tells bool   // this process tells of alerts, no other Umbel
	Error string // why rules could not be judged last, empty if they could
}

// Unacknowledged returns how many firings nobody looks after, of rules that are not muted.
func (st Status) Unacknowledged(now time.Time) int {
	n := 0
	for i := range st.Open {
		f := &st.Open[i]
		muted := slices.ContainsFunc(st.Rules, func(r Rule) bool { return r.ID == f.RuleID && r.Muted(now) })
		if f.AcknowledgedAt.IsZero() && !muted {
			n++
		}
	}
	return n
}

// Status returns the alerts as of the last record. It reads nothing. Its lists must not be changed.
func (s *Service) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{Open: s.open, Rules: s.rules, Tells: s.Tells(), Error: s.failed}
}

// Changed returns a channel that is closed when Status may have changed.
func (s *Service) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Firings returns a page of firings, newest first.
func (s *Service) Firings(ctx context.Context, f history.AlertFilter) ([]history.AlertFiring, int64, error) {
	return s.o.Store.AlertFirings(ctx, f)
}

// Receivers returns the receivers that rules may name.
func (s *Service) Receivers() []receivers.Receiver { return s.o.Receivers }

// Backtest is what a rule would have done.
type Backtest struct {
	Rule    alert.Rule // in its one spelling
	Firings []alert.Firing
	From    time.Time // a week ago
	// LogFrom is when the log begins, if that is later than From; zero otherwise. Records is how many were read since then.
	LogFrom time.Time
	Records int
	// Uncounted says that the log has no counts of the query: they are kept from when a rule with it is enabled.
	Uncounted bool
	// Matching is how many tasks match the query now, if the rule compares that.
	Matching *history.Count
}

// Backtest returns what a rule would have done in the last week: what it would do now, had it been there. The error may be
// an *alert.Error.
func (s *Service) Backtest(ctx context.Context, r alert.Rule) (b Backtest, err error) {
	if b.Rule, err = r.Check(); err != nil {
		return b, err
	}
	select {
	case s.testing <- struct{}{}:
		defer func() { <-s.testing }()
	case <-ctx.Done():
		return b, ctx.Err()
	}
	now := s.o.Now()
	b.From = now.Add(-Week)
	counted := false
	b.Firings, _, err = alert.Backtest(b.Rule, b.From, func(step func(*alert.Record) error) error {
		return s.read(ctx, b.From.Add(-alert.Lookback), func(r *alert.Record) error {
			if at := time.UnixMicro(r.From); b.Records == 0 && at.After(b.From) {
				b.LogFrom = at
			}
			counted = counted || slices.ContainsFunc(r.Counts, func(c alert.Count) bool { return c.Query == b.Rule.Query })
			b.Records++
			return step(r)
		})
	})
	if err != nil {
		return b, err
	}
	if b.Rule.Kind == alert.Threshold && b.Rule.Measure == alert.Tasks {
		b.Uncounted = !counted
		b.Matching = s.matching(ctx, b.Rule.Query)
	}
	return b, nil
}

// matching counts the tasks that match now, nil if that fails.
func (s *Service) matching(ctx context.Context, text string) *history.Count {
	q, err := query.Parse(text)
	if err != nil || s.o.Count == nil {
		return nil
	}
	n, err := s.o.Count(ctx, q)
	if err != nil {
		s.o.Logger.WarnContext(ctx, "tasks not counted for an alert", "error", err)
		return nil
	}
	return &n
}
