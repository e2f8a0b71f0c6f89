package spacetime

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Measures of the drawing, in pixels.
const (
	step    = 24 // from one event to the next, at least
	digit   = 6  // of a mark
	lane    = 60 // from one lane to the next
	left    = 16
	top     = 28
	kindMax = 6
)

// Drawing is a Diagram with coordinates. Its zero value is that of no event.
type Drawing struct {
	Title         string
	Notes, Kinds  []string
	Omitted       int // events that are not drawn
	Width, Height int
	Lanes         []DrawnLane
	Rows          []Row

	dots   []dot
	lines  []line
	bars   []bar
	ticks  []tick
	folds  []tick // gaps in time that are drawn shorter than they were
	place  []int  // of each event, from the left
	middle int    // of a step
}

// DrawnLane is a lane.
type DrawnLane struct {
	Name string
	Y    int
}

// Row is an event in words.
type Row struct {
	Number           int
	Lane, Mark, Text string
	Under            []string
	Href             string
	Sent, Received   []string
	Interval         string
	Alert            bool
}

type dot struct {
	X, Y  int
	Event Event
	After []int // events directly before it
}

type line struct {
	From, To       int // events
	X1, Y1, X2, Y2 int
	Kind           int
	Weak, Crossed  bool
	Text           string
}

type bar struct {
	X, Y, Width int
	Shade       bool
	Text        string
}

type tick struct {
	X    int
	Text string
}

// LayOut checks d and gives it coordinates.
func LayOut(d Diagram) (*Drawing, error) {
	n := min(len(d.Events), MaxEvents)
	v := &Drawing{Title: d.Title, Notes: d.Notes, Omitted: max(d.Total, len(d.Events)) - n}
	v.Height = 2*top + lane*max(len(d.Lanes)-1, 0)
	after := direct(d, n)
	v.spread(d, n, after)
	for i, name := range d.Lanes {
		v.Lanes = append(v.Lanes, DrawnLane{name, top + i*lane})
	}
	for i, e := range d.Events[:n] {
		if e.Lane < 0 || e.Lane >= len(d.Lanes) {
			return nil, fmt.Errorf("event %d is on lane %d of %d", i, e.Lane, len(d.Lanes))
		}
		v.dots = append(v.dots, dot{X: v.place[i], Y: top + e.Lane*lane, Event: e, After: after[i]})
		v.Rows = append(v.Rows, Row{Number: i + 1, Lane: d.Lanes[e.Lane], Mark: e.Mark, Under: e.Under, Text: e.Text, Href: e.Href, Alert: e.Alert})
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

// spread gives the first n events their places from left to right.
func (v *Drawing) spread(d Diagram, n int, after [][]int) {
	width := step
	for _, e := range d.Events[:n] {
		for _, text := range append(e.Under, e.Mark) {
			width = max(width, digit*len(text)+digit)
		}
	}
	v.middle = width / 2
	v.place = make([]int, n)
	if d.Timed {
		v.scale(d.Events[:n], width)
		return
	}
	last := 0
	for i, column := range columns(d, n, after) {
		v.place[i] = left + v.middle + column*width
		last = max(last, column)
	}
	v.Width = 2*left + width*(last+1)
}

// columns ranks the first n events: each is to the right of those before it on its lane, of those that arrows come from, and
// of those that surely came before it.
func columns(d Diagram, n int, after [][]int) []int {
	from := make([][]int, n)
	for _, a := range d.Arrows {
		if a.To >= 0 && a.To < n && a.From >= 0 && a.From < a.To {
			from[a.To] = append(from[a.To], a.From)
		}
	}
	onLane := make(map[int]int) // the first free column of each lane
	column := make([]int, n)
	for i, e := range d.Events[:n] {
		column[i] = onLane[e.Lane]
		for _, j := range slices.Concat(from[i], after[i]) {
			column[i] = max(column[i], column[j]+1)
		}
		onLane[e.Lane] = column[i] + 1
	}
	return column
}

// scale places events by time. A gap of the usual length is as wide as a step, and none is wider than 6: those are folded.
func (v *Drawing) scale(events []Event, width int) {
	byTime := make([]int, len(events))
	for i := range byTime {
		byTime[i] = i
	}
	slices.SortStableFunc(byTime, func(a, b int) int { return cmp.Compare(events[a].At, events[b].At) })
	var gaps []int64
	for i := 1; i < len(byTime); i++ {
		if gap := events[byTime[i]].At - events[byTime[i-1]].At; gap > 0 {
			gaps = append(gaps, gap)
		}
	}
	usual := int64(1)
	if len(gaps) > 0 {
		slices.Sort(gaps)
		usual = gaps[len(gaps)/2]
	}
	x, labelled := left+v.middle, -1000
	onLane := make(map[int]int) // the last place on each lane
	for i, n := range byTime {
		if i > 0 {
			gap := events[n].At - events[byTime[i-1]].At
			wide := int64(6 * width)
			if gap/usual < 6 {
				wide = gap * int64(width) / usual
			} else {
				v.folds = append(v.folds, tick{x + 3*width, span(gap)})
			}
			x += max(int(wide), step/3)
		}
		if last, ok := onLane[events[n].Lane]; ok {
			x = max(x, last+width*3/4) // texts on one lane do not overlap much
		}
		onLane[events[n].Lane], v.place[n] = x, x
		if x-labelled >= 96 {
			labelled = x
			v.ticks = append(v.ticks, tick{x, "+" + span(events[n].At-events[byTime[0]].At)})
		}
	}
	v.Width = x + v.middle + left + 48
}

// span is a length of time in µs, in three digits.
func span(micros int64) string {
	switch {
	case micros < 1000:
		return strconv.FormatInt(micros, 10) + " µs"
	case micros < 1_000_000:
		return strconv.FormatFloat(float64(micros)/1e3, 'f', 1, 64) + " ms"
	case micros < 100_000_000:
		return strconv.FormatFloat(float64(micros)/1e6, 'f', 2, 64) + " s"
	default:
		return strconv.FormatInt(micros/1_000_000, 10) + " s"
	}
}

// arrow adds a, unless it begins after the last event that is drawn.
func (v *Drawing) arrow(d Diagram, a Arrow, n int) error {
	if a.From < 0 || a.From >= len(d.Events) || a.To >= len(d.Events) || a.To >= 0 && a.To < a.From && !a.Weak {
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
	x1, y1 := v.place[a.From], top+from*lane
	x2, y2 := v.Width, top+to*lane
	words := strings.Join(slices.DeleteFunc([]string{a.Kind, a.Text, a.Crossed}, func(s string) bool { return s == "" }), ", ")
	v.Rows[a.From].Sent = append(v.Rows[a.From].Sent, words+" to "+d.Lanes[to])
	if a.To < n {
		x2 = v.place[a.To]
		v.Rows[a.To].Received = append(v.Rows[a.To].Received, fmt.Sprintf("%s of %s, event %d", words, d.Lanes[from], a.From+1))
	}
	v.lines = append(v.lines, line{
		From: a.From, To: a.To, X1: x1, Y1: y1, X2: x2, Y2: y2, Kind: kind, Weak: a.Weak, Crossed: a.Crossed != "",
		Text: fmt.Sprintf("%s, %s to %s", words, d.Lanes[from], d.Lanes[to]),
	})
	return nil
}

func (v *Drawing) interval(d Diagram, i Interval, n int) error {
	if i.From < 0 || i.From >= len(d.Events) || i.To >= len(d.Events) || i.To >= 0 && i.To < i.From {
		return fmt.Errorf("interval from event %d to %d of %d", i.From, i.To, len(d.Events))
	}
	if i.From >= n {
		return nil
	}
	x, on, end := v.place[i.From], d.Events[i.From].Lane, v.Width
	if i.Shade && i.To >= 0 {
		on = d.Events[i.To].Lane
	}
	if i.To >= 0 && i.To < n {
		end = v.place[i.To]
		v.Rows[i.To].Interval = cmp.Or(v.Rows[i.To].Interval, i.Text+" ends")
	}
	v.Rows[i.From].Interval = cmp.Or(v.Rows[i.From].Interval, i.Text+" begins")
	v.bars = append(v.bars, bar{X: min(x, end), Y: top + on*lane, Width: max(end-x, x-end), Shade: i.Shade, Text: i.Text + ", " + d.Lanes[on]})
	return nil
}

// direct returns the events directly before each of the first n: those before it that come before no other of them.
func direct(d Diagram, n int) [][]int {
	after := make([][]int, n)
	if d.Before == nil {
		return after
	}
	past := make([][(MaxEvents + 63) / 64]uint64, n)
	for j := range n {
		for i := j - 1; i >= 0; i-- {
			if past[j][i/64]&(1<<(i%64)) != 0 || !d.Before(i, j) {
				continue
			}
			after[j] = append(after[j], i)
			past[j][i/64] |= 1 << (i % 64)
			for k := range past[j] {
				past[j][k] |= past[i][k]
			}
		}
	}
	return after
}

// Label describes the drawing to those who do not see it.
func (v *Drawing) Label() string {
	return fmt.Sprintf("%s: %d lanes, %d events, %d arrows. The table below has the same.", v.Title, len(v.Lanes), len(v.dots), len(v.lines))
}

// kindClass is the class of arrows of a kind, none if the legend does not name it.
func kindClass(kind int) string {
	if kind < 0 {
		return ""
	}
	return "k" + strconv.Itoa(kind)
}

func (d dot) radius() int {
	if d.Event.Alert {
		return 7
	}
	return 4
}

// after lists the events directly before one.
func (d dot) after() string {
	var b []byte
	for i, n := range d.After {
		if i > 0 {
			b = append(b, ' ')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(b)
}

// path is the line of an arrow: bent where it stays on its lane.
func (l line) path() string {
	if l.Y1 == l.Y2 {
		return fmt.Sprintf("M%d %dQ%d %d %d %d", l.X1, l.Y1, (l.X1+l.X2)/2, l.Y1-lane/2, l.X2, l.Y2)
	}
	return fmt.Sprintf("M%d %dL%d %d", l.X1, l.Y1, l.X2, l.Y2)
}

// cross is a cross over the middle of an arrow.
func (l line) cross() string {
	x, y := (l.X1+l.X2)/2, (l.Y1+l.Y2)/2
	if l.Y1 == l.Y2 {
		y -= lane / 4
	}
	return fmt.Sprintf("M%d %dl10 10m0 -10l-10 10", x-5, y-5)
}

// role is that of an image, unless there are links in it.
func (v *Drawing) role() string {
	for _, d := range v.dots {
		if d.Event.Href != "" {
			return "group"
		}
	}
	return "img"
}
