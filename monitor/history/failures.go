package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state/fingerprint"
)

// FailureGroups groups failed tasks by name and fingerprint of the exception. Groups follow from the tasks that
// are kept: one whose tasks are all gone is gone, too. A task that failed and succeeded later is in none.
type FailureGroups interface {
	// FailureGroups returns the groups that r asks for.
	FailureGroups(ctx context.Context, r FailureRequest) (FailurePage, error)
	// FailureGroup returns one group as of now, ErrNotFound if there is none.
	FailureGroup(ctx context.Context, id fingerprint.ID, now time.Time) (FailureGroup, error)
	// ResolveFailureGroup marks a group as resolved at that time, or reopens it if the time is zero. A failure after it
	// reopens it by itself. ErrNotFound if there is none.
	ResolveFailureGroup(ctx context.Context, id fingerprint.ID, at time.Time) error
}

// Bounds of what is told of failures.
const (
	// MaxFailureGroups is how many groups there are at most. What fails in yet another way goes to one group
	// per name of task (fingerprint.Other).
	MaxFailureGroups = 10_000
	// MaxFailureCount is how far the tasks of a group are counted.
	MaxFailureCount = 10_000
	// TrendParts is the number of equal parts, of an hour each, that a trend has.
	TrendHours = 24
)

// FailureRequest asks for groups.
type FailureRequest struct {
	Resolved *bool            // only those that are, or are not, resolved; nil is all
	Busiest  bool             // most failures in the last hour first, only those that have any; else newest failure first
	After    *FailurePosition // the page continues after this place; not with Busiest
	Limit    int              // 1 to 500
	Now      time.Time        // what the last hour and the trend refer to
	MaxAge   time.Duration    // how old the answer may be
}

// Page returns what r asks for, of all groups there are. It takes all over.
func (r FailureRequest) Page(all []FailureGroup) FailurePage {
	var page FailurePage
	for i := range all {
		if all[i].Resolved() {
			page.Resolved++
		} else {
			page.Open++
		}
	}
	byLast := func(a, b FailureGroup) int { return cmp.Or(b.LastAt.Compare(a.LastAt), cmp.Compare(b.ID, a.ID)) }
	order := byLast
	if r.Busiest {
		order = func(a, b FailureGroup) int { return cmp.Or(cmp.Compare(b.LastHour, a.LastHour), byLast(a, b)) }
	}
	all = slices.DeleteFunc(all, func(f FailureGroup) bool {
		return r.Resolved != nil && f.Resolved() != *r.Resolved || r.Busiest && f.LastHour == 0 ||
			r.After != nil && byLast(f, FailureGroup{ID: r.After.ID, LastAt: r.After.LastAt}) <= 0
	})
	slices.SortFunc(all, order)
	if len(all) > r.Limit {
		all = slices.Clone(all[:r.Limit])
		page.Next = &FailurePosition{LastAt: all[r.Limit-1].LastAt, ID: all[r.Limit-1].ID}
	}
	page.Groups = all
	return page
}

// FailurePosition is a place in the list of groups.
type FailurePosition struct {
	LastAt time.Time
	ID     fingerprint.ID
}

// FailurePage is a part of the list of groups. It may be shared and must not be modified.
type FailurePage struct {
	Groups         []FailureGroup
	Next           *FailurePosition // where the next page starts, nil at the end
	Open, Resolved int              // groups in all, whatever was asked for
}

// FailureGroup is a group of failed tasks.
type FailureGroup struct {
	ID              fingerprint.ID
	Name            string // of the tasks, empty if it is not known
	Fingerprint     fingerprint.Fingerprint
	Example         string // exception of the newest
	TaskID          string // of the newest
	Count           Count
	LastHour        int // failures in it, up to MaxFailureCount
	FirstAt, LastAt time.Time
	Trend           []int64   // failures in each part of the last 24 hours, oldest first
	ResolvedAt      time.Time // zero if it never was
}

// Resolved reports whether the group was resolved and nothing has failed since.
func (f FailureGroup) Resolved() bool { return !f.ResolvedAt.IsZero() && !f.Recurred() }

// Recurred reports whether something has failed after the group was resolved.
func (f FailureGroup) Recurred() bool { return !f.ResolvedAt.IsZero() && f.LastAt.After(f.ResolvedAt) }
