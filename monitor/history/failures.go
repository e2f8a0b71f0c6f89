package history

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/umbelhq/umbel/state/fingerprint"
)

// FailureGroups groups failed tasks by name and fingerprint of the exception. A group exists as long as one of its tasks
// is retained. A task that failed and succeeded later is in no group.
type FailureGroups interface {
	FailureReader
	// ResolveFailureGroup marks a group as resolved at a time, or reopens it if that is zero. A later failure
	// reopens it, too. ErrNotFound if there is none.
	ResolveFailureGroup(ctx context.Context, id fingerprint.ID, at time.Time) error
	// NoteFailureGroup changes what people note about a group. ErrNotFound if there is none.
	NoteFailureGroup(ctx context.Context, id fingerprint.ID, n FailureNote) error
	// ResolvedFailures returns when groups were resolved last, of those that are or were until a later failure.
	ResolvedFailures(ctx context.Context) (map[fingerprint.ID]time.Time, error)
}

// Bounds of failure groups.
const (
	// MaxFailureGroups bounds the number of groups. Beyond it, failures go to one group per task name
	// (fingerprint.Other).
	MaxFailureGroups = 10_000
	// MaxFailureCount bounds the count of a group's tasks.
	MaxFailureCount = 10_000
	// MaxFailureNote and MaxAssignee bound what people note, in bytes. Callers check them.
	MaxFailureNote = 2_000
	MaxAssignee    = 256
	// TrendHours is the number of hours in a trend.
	TrendHours = 24
)

// FailureRequest asks for groups.
type FailureRequest struct {
	Assignee string           // only groups that are assigned to them; empty is all
	Resolved *bool            // only groups that are, or are not, resolved; nil is all
	From, To time.Time        // only groups with a failure at From ≤ t < To; zero is all
	Only     *fingerprint.ID  // only this group; nil is all
	Busiest  bool             // groups with failures in the last hour, most first; else all, newest failure first
	After    *FailurePosition // position that the page starts after; not with Busiest
	Limit    int              // 1 to 500
	Now      time.Time        // end of the last hour and of the trend
	MaxAge   time.Duration    // how old the result may be
}

// FailureReader reads groups of failures.
type FailureReader interface {
	// FailureGroups returns a page of groups.
	FailureGroups(ctx context.Context, r FailureRequest) (FailurePage, error)
	// FailureGroup returns one group as of now, ErrNotFound if there is none.
	FailureGroup(ctx context.Context, id fingerprint.ID, now time.Time) (FailureGroup, error)
}

// FailureGroupWithin returns a group as of now, with what it counts at from ≤ t < to if to is not zero. ErrNotFound if there is none.
func FailureGroupWithin(ctx context.Context, groups FailureReader, id fingerprint.ID, from, to, now time.Time) (FailureGroup, error) {
	f, err := groups.FailureGroup(ctx, id, now)
	if err != nil || to.IsZero() {
		return f, err
	}
	found, err := groups.FailureGroups(ctx, FailureRequest{From: from, To: to, Only: &id, Limit: 1, Now: now})
	if err != nil {
		return f, err
	}
	if len(found.Groups) == 0 {
		f.Within, f.Trend = 0, make([]int64, TrendHours)
		return f, nil
	}
	return found.Groups[0], nil
}

// Spanned reports whether only a span of time is asked for.
func (r FailureRequest) Spanned() bool { return !r.To.IsZero() }

// TrendSpan is where the trends of groups begin, and how long each of their parts is.
func (r FailureRequest) TrendSpan() (from time.Time, part time.Duration) {
	if !r.Spanned() {
		return r.Now.Truncate(time.Hour).Add(-(TrendHours - 1) * time.Hour), time.Hour
	}
	return r.From, max((r.To.Sub(r.From)+TrendHours*time.Microsecond-1)/TrendHours, time.Microsecond).Truncate(time.Microsecond)
}

// Page selects the page from all groups. It modifies all.
func (r FailureRequest) Page(all []FailureGroup) FailurePage {
	var page FailurePage
	if r.Assignee != "" {
		all = slices.DeleteFunc(all, func(f FailureGroup) bool { return f.Assignee != r.Assignee })
	}
	if r.Spanned() {
		all = slices.DeleteFunc(all, func(f FailureGroup) bool { return f.Within == 0 })
	}
	if r.Only != nil {
		all = slices.DeleteFunc(all, func(f FailureGroup) bool { return f.ID != *r.Only })
	}
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

// FailurePosition is a position in the list of groups.
type FailurePosition struct {
	LastAt time.Time
	ID     fingerprint.ID
}

// FailurePage is a part of the list of groups. It may be shared and must not be modified.
type FailurePage struct {
	Groups         []FailureGroup
	Next           *FailurePosition // where the next page starts, nil at the end
	Open, Resolved int              // all groups of the assignee and the span, whatever else the request has
}

// FailureGroup is a group of failed tasks.
type FailureGroup struct {
	ID              fingerprint.ID
	Name            string // of the tasks, empty if unknown
	Fingerprint     fingerprint.Fingerprint
	Example         string // exception of the newest
	TaskID          string // of the newest
	Count           Count
	LastHour        int // failures in it, up to MaxFailureCount
	Within          int // failures in the span that was asked for, up to MaxFailureCount; 0 without one
	FirstAt, LastAt time.Time
	Trend           []int64   // failures in each of TrendHours parts of that span, without one in each of the last hours, oldest first
	ResolvedAt      time.Time // zero if it never was

	Note     string
	NotedBy  string    // user, empty if unknown
	NotedAt  time.Time // zero if there is no note
	Assignee string    // user that people chose, empty for nobody
}

// FailureNote changes what people note about a group. A nil text leaves what there is, an empty one removes it.
type FailureNote struct {
	Text     *string // by By
	Assignee *string
	By       string
	At       time.Time
}

// Resolved reports whether the group was resolved and no task has failed since.
func (f FailureGroup) Resolved() bool { return !f.ResolvedAt.IsZero() && !f.Recurred() }

// Recurred reports whether a task has failed since the group was resolved.
func (f FailureGroup) Recurred() bool { return !f.ResolvedAt.IsZero() && f.LastAt.After(f.ResolvedAt) }
