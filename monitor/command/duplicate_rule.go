package command

import (
	"context"
	"errors"

	"github.com/umbelhq/umbel/monitor/history"
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

// PreviewDuplicateRule returns what a rule would group. It reads for 300 ms at most. The error is an *Error if the request
// is invalid.
func (s *Service) PreviewDuplicateRule(ctx context.Context, r DuplicateRuleRequest) (DuplicateRulePreview, error) {
	return DuplicateRulePreview{}, errors.New("not built yet")
}

// SaveDuplicateRule saves a rule with an audit record. It reports false, and does nothing, if there is such a rule already,
// so that a repeated request is harmless. The error is an *Error if the request is invalid.
func (s *Service) SaveDuplicateRule(ctx context.Context, caller Caller, r DuplicateRuleRequest) (changed bool, err error) {
	return false, errors.New("not built yet")
}
