package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// DuplicateRules stores the rules: a history.Store.
type DuplicateRules interface {
	DuplicateRules(ctx context.Context) ([]history.DuplicateRule, error)
	SaveDuplicateRule(ctx context.Context, r history.DuplicateRule, a history.AuditRecord) (changed bool, err error)
}

// DuplicateRuleRequest says which fields of the arguments of a task do not count when its calls are compared. It replaces
// the rule that there is; without fields it deletes it.
type DuplicateRuleRequest struct {
	Name    string   // of the task
	Exclude []string // paths as in idempotency.Options.Without: request_id, order.at, [0], lines[*].at
}

// DuplicateRulePreview is what a rule would group, by the newest tasks of its name.
type DuplicateRulePreview struct {
	Tasks     int  // examined, at most 2,000
	Complete  bool // these are all tasks of the name
	Ungrouped int  // of them, those whose arguments are not known as a whole
	// Before and After are with the rule that there is, and with the one to save.
	Before, After DuplicateRuleEffect
	// Samples are the largest groups that the rule would make, at most 10, most tasks first.
	Samples []DuplicateRuleSample
	Current []string // fields that the rule that there is excludes
	Same    bool     // there is such a rule already
}

// DuplicateRuleEffect counts groups of two or more calls.
type DuplicateRuleEffect struct {
	Groups  int
	Grouped int // tasks in them
}

// DuplicateRuleSample is one group that a rule would make.
type DuplicateRuleSample struct {
	Tasks        int
	IDs          []string // the newest, at most 3
	Args, Kwargs string   // what counts of the arguments, as JSON
}

// Bounds of a rule and of its preview.
const (
	maxTaskName    = 512 // bytes, as in memory
	maxField       = 512 // bytes
	previewTasks   = 2_000
	previewTime    = 300 * time.Millisecond
	previewPage    = 250
	previewSamples = 10
)

// PreviewDuplicateRule returns what a rule would group. It reads for 300 ms, or a page of tasks. The error is an *Error if
// the request is invalid.
func (s *Service) PreviewDuplicateRule(ctx context.Context, r DuplicateRuleRequest) (DuplicateRulePreview, error) {
	var p DuplicateRulePreview
	after, err := r.check()
	if err != nil {
		return p, err
	}
	current, err := s.excludedFields(ctx, r.Name)
	if err != nil {
		return p, err
	}
	before, err := idempotency.New(idempotency.Options{Without: current})
	if err != nil {
		return p, fmt.Errorf("read rule of %s: %w", r.Name, err)
	}
	p.Current, p.Same = current, slices.Equal(current, r.fields())
	groups := map[state.CallID]*DuplicateRuleSample{}
	was := map[state.CallID]int{}
	p.Complete, err = s.newestTasks(ctx, r.Name, func(t *state.Task) {
		p.Tasks++
		arguments, ok := duplicates.ArgumentsOf(t)
		if !ok {
			p.Ungrouped++
			return
		}
		was[arguments.Call(r.Name, before)]++
		call := arguments.Call(r.Name, after)
		g := groups[call]
		if g == nil {
			g = new(DuplicateRuleSample)
			groups[call] = g
			if args, kwargs, err := after.Reduce(arguments.Args, arguments.Kwargs); err == nil {
				g.Args, g.Kwargs = args.String(), kwargs.String()
			}
		}
		if g.Tasks++; len(g.IDs) < 3 {
			g.IDs = append(g.IDs, t.ID)
		}
	})
	for _, n := range was {
		p.Before.add(n)
	}
	for _, g := range groups {
		if p.After.add(g.Tasks); g.Tasks > 1 {
			p.Samples = append(p.Samples, *g)
		}
	}
	slices.SortFunc(p.Samples, func(a, b DuplicateRuleSample) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Kwargs, b.Kwargs), cmp.Compare(a.Args, b.Args))
	})
	p.Samples = p.Samples[:min(len(p.Samples), previewSamples)]
	return p, err
}

// add counts a call that n tasks have.
func (e *DuplicateRuleEffect) add(n int) {
	if n > 1 {
		e.Groups, e.Grouped = e.Groups+1, e.Grouped+n
	}
}

// newestTasks calls f with the newest tasks of a name and reports whether those are all.
func (s *Service) newestTasks(ctx context.Context, name string, f func(t *state.Task)) (complete bool, err error) {
	begin := time.Now()
	r := history.TaskRequest{Query: query.New(query.Equal(query.Name, name)), Limit: previewPage, Now: s.now()}
	for n := 0; n < previewTasks && (n == 0 || time.Since(begin) < previewTime); {
		page, err := s.tasks.Tasks(ctx, r)
		if err != nil {
			return false, fmt.Errorf("read tasks %s: %w", name, err)
		}
		for i := range page.Tasks {
			if t := &page.Tasks[i]; t.Name != nil && *t.Name == name { // else it was replaced
				f(t)
			}
		}
		n += len(page.Tasks)
		if r.From = page.Next; r.From == nil {
			return true, nil
		}
	}
	return false, nil
}

// SaveDuplicateRule saves a rule with an audit record. It reports false, and does nothing, if there is such a rule already,
// so that a repeated request is harmless. The error is an *Error if the request is invalid.
func (s *Service) SaveDuplicateRule(ctx context.Context, caller Caller, r DuplicateRuleRequest) (changed bool, err error) {
	if _, err := r.check(); err != nil {
		return false, err
	}
	if s.rules == nil {
		return false, &Error{Kind: Conflict, Message: "rules for duplicates cannot be saved here"}
	}
	now, fields := s.now(), r.fields()
	action := "exclude fields"
	if len(fields) == 0 {
		action = "include all fields"
	}
	audit, err := s.audit(caller, now, action, "task "+r.Name, map[string]any{"exclude": fields})
	if err != nil {
		return false, fmt.Errorf("save rule of %s: %w", r.Name, err)
	}
	audit.Kind = history.AuditRule
	changed, err = s.rules.SaveDuplicateRule(ctx, history.DuplicateRule{Name: r.Name, Exclude: fields, At: now, Actor: caller.Actor}, audit)
	switch {
	case errors.Is(err, history.ErrTooManyDuplicateRules):
		return false, &Error{Kind: Conflict, Message: fmt.Sprintf("there are %d rules already: delete one that is not needed", history.MaxDuplicateRules)}
	case err != nil:
		return false, fmt.Errorf("save rule of %s: %w", r.Name, err)
	}
	return changed, nil
}

// fields returns the fields, sorted, each once.
func (r DuplicateRuleRequest) fields() []string {
	return slices.Compact(slices.Sorted(slices.Values(r.Exclude)))
}

// check returns what leaves out the fields, or an *Error.
func (r DuplicateRuleRequest) check() (*idempotency.Fingerprinter, error) {
	if r.Name == "" || len(r.Name) > maxTaskName {
		return nil, &Error{Field: "name", Message: fmt.Sprintf("the name of a task is needed, of at most %d bytes", maxTaskName)}
	}
	if len(r.Exclude) > history.MaxExcludedFields {
		return nil, &Error{Field: "exclude", Message: fmt.Sprintf("at most %d fields can be excluded", history.MaxExcludedFields)}
	}
	for i, path := range r.Exclude {
		if len(path) > maxField {
			return nil, &Error{Field: fmt.Sprintf("exclude[%d]", i), Message: fmt.Sprintf("a field has at most %d bytes", maxField)}
		}
		if _, err := idempotency.New(idempotency.Options{Without: []string{path}}); err != nil {
			return nil, &Error{Field: fmt.Sprintf("exclude[%d]", i), Message: err.Error()}
		}
	}
	return idempotency.New(idempotency.Options{Without: r.Exclude})
}

// excludedFields returns the fields that the rule of a name excludes.
func (s *Service) excludedFields(ctx context.Context, name string) ([]string, error) {
	if s.rules == nil {
		return nil, nil
	}
	rules, err := s.rules.DuplicateRules(ctx)
	if err != nil {
		return nil, fmt.Errorf("read rules for duplicates: %w", err)
	}
	for _, rule := range rules {
		if rule.Name == name {
			return rule.Exclude, nil
		}
	}
	return nil, nil
}
