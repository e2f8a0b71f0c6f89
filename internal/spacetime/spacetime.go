// Package spacetime draws space-time diagrams: a lane for each process, its events from left to right, in order or by time, an
// arrow for each message, and bars for intervals. It knows nothing of what they mean.
package spacetime

import (
	"context"
	"io"
)

// MaxEvents is how many events are drawn. Those after it are left out, and the diagram says so.
const MaxEvents = 250

// Diagram is what to draw.
type Diagram struct {
	Title     string
	Notes     []string // paragraphs above the drawing
	Lanes     []string // names, from top to bottom
	Events    []Event  // in an order in which no arrow leads back
	Arrows    []Arrow
	Intervals []Interval
	Total     int  // events there were, if more than Events has
	Timed     bool // places follow Event.At; otherwise, the order
	// Before reports whether an event surely came before another, by their indexes. With it, the drawing can show the past
	// and the future of each; it is nil where it need not.
	Before func(i, j int) bool
}

// Event is one event of a lane.
type Event struct {
	Lane  int
	Mark  string   // short text above the event, such as a clock
	Under []string // the same below it, at most 2 lines
	Text  string   // what happened
	Class string   // of the dot, besides "dot"
	Href  string   // what it leads to, empty for nothing
	At    int64    // µs; used if the diagram is timed
	Alert bool     // drawn to stand out
}

// Arrow leads from an event to a later one. Arrows of one Kind look alike; the legend names up to 6 kinds.
type Arrow struct {
	From, To int // indexes of events; To is -1 if it has not arrived
	Kind     string
	Text     string // more of it, empty for nothing
	Weak     bool   // not proved: drawn with dashes
	Crossed  string // why it is crossed out, empty if it is not
}

// Interval is a bar on a lane between two of its events.
type Interval struct {
	From, To int // indexes of events; To is -1 if it has not ended
	Text     string
	Shade    bool // a pale area instead of a bar; To may be an event of another lane, on which it lies
}

// Document writes a page that needs no other file.
func Document(ctx context.Context, w io.Writer, d Diagram) error {
	v, err := LayOut(d)
	if err != nil {
		return err
	}
	return document(v).Render(ctx, w) //nolint:contextcheck // templ passes it on
}
