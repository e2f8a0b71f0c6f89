package history

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/umbelhq/umbel/state"
)

// Duplicates groups tasks that are the same call: one name with equal arguments, but for fields that a rule excludes. A
// task that was redelivered or sent twice is a group by itself, whether or not its arguments are known, unless it is in
// the group of its call.
type Duplicates interface {
	// DuplicateGroups returns a page of groups.
	DuplicateGroups(ctx context.Context, r DuplicateRequest) (DuplicatePage, error)
	// DuplicateGroup returns one group with its newest tasks, at most limit, ErrNotFound if there is none.
	DuplicateGroup(ctx context.Context, key DuplicateKey, limit int) (DuplicateGroup, error)
	// MarkDuplicates sets CallID and Duplicates of those tasks, at most 500, that are in the store.
	MarkDuplicates(ctx context.Context, tasks []state.Task) error
	// DuplicateStats summarizes the groups. It may be 10 s old.
	DuplicateStats(ctx context.Context) (DuplicateStats, error)
	// DuplicateRules returns the rules by name, with the progress of applying them.
	DuplicateRules(ctx context.Context) ([]DuplicateRule, error)
	// SaveDuplicateRule writes a rule, with its audit record, in one transaction. Tasks that are saved later are grouped by
	// it at once, and those in the store step by step. It reports false, and writes nothing, if there is such a rule
	// already. A rule that excludes nothing deletes the one of its name. The error is ErrTooManyDuplicateRules if there are
	// MaxDuplicateRules.
	SaveDuplicateRule(ctx context.Context, r DuplicateRule, a AuditRecord) (changed bool, err error)
	// LearnArguments groups a stored task whose arguments, an array and an object in JSON, were learned elsewhere, such as
	// from the result backend, unless its events show them. It ignores tasks that are not stored, and arguments that are
	// not whole.
	LearnArguments(ctx context.Context, taskID string, args, kwargs []byte) error
}

// Bounds of duplicates.
const (
	MaxDuplicateTasks = 500 // tasks read of one group
	MaxDuplicateRules = 1_000
	MaxExcludedFields = 100 // of a rule
)

// ErrTooManyDuplicateRules is returned when MaxDuplicateRules are saved already.
var ErrTooManyDuplicateRules = errors.New("too many rules for duplicates")

// DuplicateKey names a group: those tasks with a call, or one task by itself.
type DuplicateKey struct {
	Call   state.CallID
	TaskID string // if Call is unknown
}

// String returns the 32 hexadecimal digits of the call, or task: and the id.
func (k DuplicateKey) String() string {
	if k.Call.Known() {
		return k.Call.String()
	}
	return "task:" + k.TaskID
}

// ParseDuplicateKey parses what String returns, and reports whether s is that.
func ParseDuplicateKey(s string) (DuplicateKey, bool) {
	if id, ok := strings.CutPrefix(s, "task:"); ok {
		return DuplicateKey{TaskID: id}, id != ""
	}
	call, ok := state.ParseCallID(s)
	return DuplicateKey{Call: call}, ok
}

// DuplicateRequest asks for groups.
type DuplicateRequest struct {
	Marks state.Duplicates   // only groups in which some task has one of them; 0 is all
	Name  string             // only of tasks with this name, if not empty
	Most  bool               // most tasks first; else the newest task first
	After *DuplicatePosition // position that the page starts after
	Limit int                // 1 to 500
	Tasks int                // newest tasks to read of each group, 1 to MaxDuplicateTasks
}

// DuplicatePosition is a position in a list of groups.
type DuplicatePosition struct {
	Tasks  int   // DuplicateGroup.N, if the list is sorted by it
	Newest int64 // DuplicateGroup.Position
}

// DuplicatePage is a part of a list of groups.
type DuplicatePage struct {
	Groups []DuplicateGroup
	Next   *DuplicatePosition // where the next page starts, nil at the end
}

// DuplicateGroup is the tasks of one call, or one task that was redelivered or sent twice.
type DuplicateGroup struct {
	Key      DuplicateKey
	Name     string           // of the task, empty if unknown
	N        int              // retained tasks
	Marks    state.Duplicates // that tasks of it have or had
	Position int64            // of its newest task in the order in which tasks were first saved
	Oldest   time.Time        // when its oldest task was sent, or else received or started
	Newest   time.Time        // the same of its newest
	Tasks    []state.Task     // the newest, newest first, with CallID and Duplicates
}

// DuplicateStats summarizes the groups.
type DuplicateStats struct {
	Tasks     int // retained ones in the store
	Groups    int // of two tasks or more, and of single redelivered or resent ones
	Grouped   int // tasks in them
	Ungrouped int // tasks whose arguments are not known as a whole, which are never grouped by call
	// UngroupedNames has the names of most of those, most tasks first, at most 20.
	UngroupedNames []NameCount
	// Pending is how many rows the background step has yet to look at: of tasks saved by an older version, or to which a
	// new rule applies. Until it is 0, groups are incomplete.
	Pending int
}

// NameCount is how many tasks have a name.
type NameCount struct {
	Name string // empty if unknown
	N    int
}

// DuplicateRule says which fields of the arguments of a task do not count.
type DuplicateRule struct {
	Name    string   // of the task
	Exclude []string // paths as in idempotency.Options.Without
	At      time.Time
	Actor   string // who saved it
	Pending int    // rows that the background step has yet to look at to apply it
}
