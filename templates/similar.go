package templates

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/state"
)

// MaxSimilar is how many runs a task is shown among.
const MaxSimilar = 60

// ComparePath is the address, below the prefix, of a task beside another one; beside the last success before it if with is
// empty.
func ComparePath(id, with string) string {
	path := TaskPath(id) + "/compare"
	if with != "" {
		path += "?" + url.Values{"with": {with}}.Encode()
	}
	return path
}

func (u URLs) compare(id, with string) templ.SafeURL { return u.path(ComparePath(id, with)) }

// SimilarRun is a task of the same name that has ended.
type SimilarRun struct {
	ID        string
	State     state.State
	Ran       *float64 // s, nil if unknown
	Worker    *string
	UpdatedAt int64 // µs since 1970
}

// RunOf returns what is shown of a task among others.
func RunOf(t *state.Task) SimilarRun {
	return SimilarRun{ID: t.ID, State: t.State, Ran: ran(*t), Worker: t.Worker, UpdatedAt: t.UpdatedAt}
}

// Similar are the last runs of the name of a task, the oldest first.
type Similar struct {
	About SimilarRun // the task of the page, which may be among them
	Name  string     // empty if it is not known
	Runs  []SimilarRun
	Pick  bool // a dot leads to the comparison with it, else to its task
}

// href is where a dot leads.
func (v Similar) href(u URLs, r SimilarRun) templ.SafeURL {
	if v.Pick && r.ID != v.About.ID {
		return u.compare(v.About.ID, r.ID)
	}
	return u.task(r.ID)
}

// others are the runs but that of the page.
func (v Similar) others() []SimilarRun {
	return slices.DeleteFunc(slices.Clone(v.Runs), func(r SimilarRun) bool { return r.ID == v.About.ID })
}

// all are the runs with that of the page, which stands where it belongs by time.
func (v Similar) all() []SimilarRun {
	list := v.others()
	if !v.About.State.Final() {
		return list
	}
	i, _ := slices.BinarySearchFunc(list, v.About.UpdatedAt, func(r SimilarRun, at int64) int { return int(r.UpdatedAt - at) })
	return slices.Insert(list, i, v.About)
}

// rank says how slow the task is among the others.
func (v Similar) rank() string {
	if v.About.Ran == nil {
		if !v.About.State.Final() {
			return "It has not ended."
		}
		return "How long it ran is not known."
	}
	known, faster, slower := 0, 0, 0 // others
	for _, r := range v.others() {
		switch {
		case r.Ran == nil:
			continue
		case *r.Ran < *v.About.Ran:
			faster++
		case *r.Ran > *v.About.Ran:
			slower++
		}
		known++
	}
	text := "It ran for " + duration(*v.About.Ran)
	word, n := "slower", faster
	if slower > faster {
		word, n = "faster", slower
	}
	switch {
	case known == 0:
		return text + "."
	case known < 10:
		return text + ": " + word + " than " + strconv.Itoa(n) + " of the " + plural(known, "other run", "other runs") + " whose time is known."
	default:
		return text + ": " + word + " than " + strconv.Itoa(100*n/known) + thin + "% of the last " + number(known) + "."
	}
}

// timeless says how many runs are not drawn.
func (v Similar) timeless() string {
	n := 0
	for _, r := range v.all() {
		if r.Ran == nil {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return "Not drawn, since it is not known how long they ran: " + number(n) + "."
}

// Places of a plot, in pixels.
const (
	plotTop    = 10
	plotHeight = 110
)

// plotDot is a run in the plot. X is a share of its width.
type plotDot struct {
	SimilarRun

	X     string
	Y     int
	About bool
	Words string
}

// plotLine is a line of the scale.
type plotLine struct {
	Y    int
	Text string
}

// plot places the runs one beside the other from left to right, and by how long they ran from the bottom to the top on a logarithmic
// scale. It is empty if no run time is known.
func (v Similar) plot() (dots []plotDot, lines []plotLine) {
	runs := slices.DeleteFunc(v.all(), func(r SimilarRun) bool { return r.Ran == nil })
	if len(runs) == 0 {
		return nil, nil
	}
	low, high := math.Inf(1), 0.0
	for _, r := range runs {
		low, high = min(low, max(*r.Ran, 1e-4)), max(high, *r.Ran, 1e-4)
	}
	bottom, top := decadeBelow(low), decadeAbove(high)
	if top <= bottom {
		top = bottom * 10
	}
	y := func(s float64) int {
		share := math.Log(max(s, bottom)/bottom) / math.Log(top/bottom)
		return plotTop + int(math.Round(plotHeight*(1-share)))
	}
	for s := bottom; s <= top*1.001; s *= 10 {
		lines = append(lines, plotLine{y(s), strings.Replace(duration(s), ".0", "", 1)})
	}
	for i, r := range runs {
		d := plotDot{SimilarRun: r, Y: y(*r.Ran), About: r.ID == v.About.ID}
		d.X = strconv.FormatFloat(1+98*(float64(i)+.5)/float64(len(runs)), 'f', 2, 64) + "%"
		d.Words = fmt.Sprintf("%s %s, %s", shortID(r.ID), stateWord(r.State), duration(*r.Ran))
		if d.About {
			d.Words += ", this task"
		}
		dots = append(dots, d)
	}
	return dots, lines
}

// decadeBelow and decadeAbove round to powers of ten.
func decadeBelow(s float64) float64 { return math.Pow(10, math.Floor(math.Log10(s)+1e-9)) }

func decadeAbove(s float64) float64 { return math.Pow(10, math.Ceil(math.Log10(s)-1e-9)) }

// dotShape is the shape that tells a state without its colour.
func dotShape(s state.State) string {
	switch s {
	case state.Success:
		return "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z"
	case state.Failure:
		return "M-5 -3.5L-3.5 -5L0 -1.5L3.5 -5L5 -3.5L1.5 0L5 3.5L3.5 5L0 1.5L-3.5 5L-5 3.5L-1.5 0z"
	case state.Revoked, state.Rejected:
		return "M-4 -4h8v8h-8z"
	case state.Pending, state.Received, state.Started, state.Retry:
	}
	return "M0 -5L5 4H-5z"
}

// states are those in the plot, for its legend.
func (v Similar) states() []state.State {
	counts := map[state.State]int{}
	for _, r := range v.all() {
		counts[r.State]++
	}
	return slices.DeleteFunc(States(counts), func(s state.State) bool { return counts[s] == 0 })
}
