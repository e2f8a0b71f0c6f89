package history

import (
	"context"
	"time"
)

// Bounds of marks.
const (
	MaxMarks      = 2_000                // five a day for MarkRetention; beyond them, the oldest are removed
	MarkRetention = 400 * 24 * time.Hour // as long as rollups of days are kept
)

// Marks stores moments that people want to see in charts, such as deploys.
type Marks interface {
	// Marks returns the marks with from ≤ At < to, oldest first; the newest limit if there are more.
	Marks(ctx context.Context, from, to time.Time, limit int) ([]Mark, error)
	// AddMark stores a mark, which has no ID, and returns it with one. The oldest goes if there are MaxMarks.
	AddMark(ctx context.Context, m Mark) (Mark, error)
	// DeleteMark removes a mark and returns it, ErrNotFound if there is none.
	DeleteMark(ctx context.Context, id string) (Mark, error)
}

// Mark is a moment with a text.
type Mark struct {
	ID      string
	At      time.Time // in µs
	Text    string
	Link    string // URL, empty if there is none
	Service string // what was deployed, empty if not said
	Version string // of it, empty if not said
	By      string // who added it, empty if unknown
}
