// Package spacetime draws space-time diagrams: a lane for each process, its events in order from left to right, an arrow for
// each message, and bars for intervals. It knows nothing of what they mean.
package spacetime

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// MaxEvents is how many events are drawn. Those after it are left out, and the diagram says so.
const MaxEvents = 250

// Diagram is what to draw.
type Diagram struct {
	Title     string
	Notes     []string // paragraphs above the drawing
	Lanes     []string // names, from top to bottom
	Events    []Event  // in order of time
	Arrows    []Arrow
	Intervals []Interval
	Total     int // events there were, if more than Events has
}

// Event is one event of a lane.
type Event struct {
	Lane  int
	Mark  string // short text at the event, such as a clock
	Text  string // what happened
	Alert bool   // drawn to stand out
}

// Arrow leads from an event to a later one. Arrows of one Kind look alike; the legend names up to 4 kinds.
type Arrow struct {
	From, To int // indexes of events; To is -1 if it has not arrived
	Kind     string
}

// Interval is a bar on a lane between two of its events.
type Interval struct {
	From, To int // indexes of events; To is -1 if it has not ended
	Text     string
}

// Document writes a page that needs no other file.
func Document(ctx context.Context, w io.Writer, d Diagram) error {
	v, err := layOut(d)
	if err != nil {
		return err
	}
	return document(v).Render(ctx, w) //nolint:contextcheck // templ passes it on
}

// SVG writes the drawing alone. It is styled by the classes of the document.
func SVG(ctx context.Context, w io.Writer, d Diagram) error {
	v, err := layOut(d)
	if err != nil {
		return err
	}
	return svg(v).Render(ctx, w) //nolint:contextcheck // templ passes it on
}

// Measures of the drawing, in pixels.
const (
	step    = 24 // from one event to the next
	lane    = 48 // from one lane to the next
	left    = 16
	top     = 28
	kindMax = 4
)

// drawing is a Diagram with coordinates.
type drawing struct {
	Title         string
	Notes, Kinds  []string
	Omitted       int
	Width, Height int
	Lanes         []drawnLane
	Dots          []dot
	Lines         []line
	Bars          []bar
	Rows          []row
}

type drawnLane struct {
	Name string
	Y    int
}

type dot struct {
	X, Y, MarkY int
	Mark, Text  string
	Alert       bool
}

type line struct {
	X1, Y1, X2, Y2 int
	Kind           int
	Text           string
}

type bar struct {
	X, Y, Width int
	Text        string
}

// row is an event in the table.
type row struct {
	Number           int
	Lane, Mark, Text string
	Sent, Received   []string
	Interval         string
	Alert            bool
}

// layOut checks d and gives it coordinates.
func layOut(d Diagram) (*drawing, error) {
	n := min(len(d.Events), MaxEvents)
	v := &drawing{Title: d.Title, Notes: d.Notes, Omitted: max(d.Total, len(d.Events)) - n}
	v.Width, v.Height = 2*left+step*max(n, 1), 2*top+lane*max(len(d.Lanes)-1, 0)
	for i, name := range d.Lanes {
		v.Lanes = append(v.Lanes, drawnLane{name, top + i*lane})
	}
	for i, e := range d.Events[:n] {
		if e.Lane < 0 || e.Lane >= len(d.Lanes) {
			return nil, fmt.Errorf("event %d is on lane %d of %d", i, e.Lane, len(d.Lanes))
		}
		x, y := place(i, e.Lane)
		v.Dots = append(v.Dots, dot{X: x, Y: y, MarkY: y - 10, Mark: e.Mark, Text: e.Text, Alert: e.Alert})
		v.Rows = append(v.Rows, row{Number: i + 1, Lane: d.Lanes[e.Lane], Mark: e.Mark, Text: e.Text, Alert: e.Alert})
	}
	for _, a := range d.Arrows {
		if err := v.arrow(d, a, n); err != nil {
			return nil, err
		}
	}
	for _, i := range d.Intervals {
		if err := v.interval(d, i, n); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// place is where an event is drawn.
func place(event, onLane int) (x, y int) { return left + step/2 + event*step, top + onLane*lane }

// arrow adds a, unless it begins after the last event that is drawn.
func (v *drawing) arrow(d Diagram, a Arrow, n int) error {
	if a.From < 0 || a.From >= len(d.Events) || a.To >= len(d.Events) || a.To >= 0 && a.To < a.From {
		return fmt.Errorf("arrow from event %d to %d of %d", a.From, a.To, len(d.Events))
	}
	if a.From >= n || a.To < 0 {
		return nil
	}
	kind := slices.Index(v.Kinds, a.Kind)
	if kind < 0 && len(v.Kinds) < kindMax {
		kind = len(v.Kinds)
		v.Kinds = append(v.Kinds, a.Kind)
	}
	from, to := d.Events[a.From].Lane, d.Events[a.To].Lane
	x1, y1 := place(a.From, from)
	x2, y2 := place(a.To, to)
	v.Rows[a.From].Sent = append(v.Rows[a.From].Sent, a.Kind+" to "+d.Lanes[to])
	if a.To < n {
		v.Rows[a.To].Received = append(v.Rows[a.To].Received, fmt.Sprintf("%s of %s, event %d", a.Kind, d.Lanes[from], a.From+1))
	} else { // ends at the edge
		y2 = y1 + (y2-y1)*(v.Width-x1)/(x2-x1)
		x2 = v.Width
	}
	v.Lines = append(v.Lines, line{X1: x1, Y1: y1, X2: x2, Y2: y2, Kind: kind, Text: fmt.Sprintf("%s, %s to %s", a.Kind, d.Lanes[from], d.Lanes[to])})
	return nil
}

func (v *drawing) interval(d Diagram, i Interval, n int) error {
	if i.From < 0 || i.From >= len(d.Events) || i.To >= len(d.Events) || i.To >= 0 && i.To < i.From {
		return fmt.Errorf("interval from event %d to %d of %d", i.From, i.To, len(d.Events))
	}
	if i.From >= n {
		return nil
	}
	x, y := place(i.From, d.Events[i.From].Lane)
	end := v.Width
	if i.To >= 0 && i.To < n {
		end, _ = place(i.To, 0)
		v.Rows[i.To].Interval = cmp.Or(v.Rows[i.To].Interval, i.Text+" ends")
	}
	v.Rows[i.From].Interval = cmp.Or(v.Rows[i.From].Interval, i.Text+" begins")
	v.Bars = append(v.Bars, bar{X: x, Y: y - 5, Width: end - x, Text: i.Text + ", " + d.Lanes[d.Events[i.From].Lane]})
	return nil
}

// label describes the drawing to those who do not see it.
func (v *drawing) label() string {
	return fmt.Sprintf("%s: %d lanes, %d events, %d arrows. The table below has the same.", v.Title, len(v.Lanes), len(v.Dots), len(v.Lines))
}

// kindClass is the class of arrows of a kind, none if the legend does not name it.
func kindClass(kind int) string {
	if kind < 0 {
		return ""
	}
	return "k" + strconv.Itoa(kind)
}

func (d dot) radius() int {
	if d.Alert {
		return 7
	}
	return 4
}
