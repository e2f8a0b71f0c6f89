package templates

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/internal/spacetime"
	"github.com/umbelhq/umbel/monitor/workflow"
	"github.com/umbelhq/umbel/state/causality"
)

// SpaceTime is a space-time diagram of the events of some tasks: as a panel of a task's page, and as a tab of a workflow.
type SpaceTime struct {
	Graph   *causality.Graph
	About   []string         // tasks whose events are filled; the others are drawn for what they have to do with them
	Offsets map[string]int64 // how far the clock of each host is ahead of the local one, µs; those not in it are unknown
	Timed   bool             // places follow time; otherwise, the causal order
	ByOrder Choice
	ByTime  Choice
	Left    string // what of the workflow is not drawn, sentences
	Earlier templ.SafeURL
	Later   templ.SafeURL
}

// Content draws the tab.
func (v SpaceTime) Content(u URLs) templ.Component { return v.region(u) }

func (v SpaceTime) region(u URLs) templ.Component {
	return region("space-time", spaceTime(u, v, v.layOut(u)))
}

// drawnSpaceTime is the diagram with coordinates.
type drawnSpaceTime struct {
	*spacetime.Drawing
	Processes   []laneName // of its lanes
	Uncorrected []string   // hosts whose clocks could not be corrected, if places follow time
	Inversions  []string   // pairs of hosts whose clocks contradict causes, in words
	Gossip      bool
	Weak        bool
	Back        bool // an arrow leads back in the causal order
}

type laneName struct{ Name, Process string }

// layOut gives the events coordinates.
func (v SpaceTime) layOut(URLs) drawnSpaceTime {
	g := v.Graph
	if g == nil {
		return drawnSpaceTime{Drawing: &spacetime.Drawing{}}
	}
	nodes := g.Order()
	drawn := nodes[:min(len(nodes), spacetime.MaxEvents)]
	d := spacetime.Diagram{Title: "Space-time diagram", Total: len(nodes), Timed: v.Timed}
	out := drawnSpaceTime{}
	lanes := make(map[[2]int]int) // by process and life
	index := make(map[causality.Node]int, len(drawn))
	at, names := int64(0), v.names()
	for i, n := range drawn {
		e := g.Event(n)
		process, life := g.Process(n)
		lane, ok := lanes[[2]int{process, life}]
		if !ok {
			lane = len(d.Lanes)
			lanes[[2]int{process, life}] = lane
			name := laneOf(e, life)
			out.Processes = append(out.Processes, name)
			d.Lanes = append(d.Lanes, strings.TrimSuffix(name.Name+", "+name.Process, ", "))
		}
		index[n] = i
		if at = v.at(e, at); v.Timed && e.Stamp.Micros != 0 {
			if h := workflow.Host(e.Process.Hostname); !v.corrected(h) && !slices.Contains(out.Uncorrected, h) {
				out.Uncorrected = append(out.Uncorrected, h)
			}
		}
		e.Name = cmp.Or(e.Name, names[e.Task])
		d.Events = append(d.Events, v.event(e, lane, i, at))
	}
	out.Inversions = v.arrows(&d, index)
	for _, a := range d.Arrows {
		out.Weak = out.Weak || a.Weak
		out.Back = out.Back || !v.Timed && a.To < a.From
	}
	out.Gossip = len(d.Intervals) > 0
	d.Before = v.before(drawn)
	out.Drawing = drawing(d)
	return out
}

// drawing lays a diagram out. One that cannot be is drawn without arrows: what is drawn never depends on who sends events.
func drawing(d spacetime.Diagram) *spacetime.Drawing {
	v, err := spacetime.LayOut(d)
	if err != nil {
		d.Arrows, d.Intervals = nil, nil
		v, _ = spacetime.LayOut(d)
	}
	return v
}

// laneOf names a process.
func laneOf(e causality.Event, life int) laneName {
	l := laneName{Name: e.Process.Hostname}
	switch {
	case e.Kind == causality.Command:
		return laneName{"Umbel", "control"}
	case e.Kind == causality.Reply:
		return laneName{l.Name, "replies"}
	case e.Process.PID != 0:
		l.Process = "pid " + strconv.FormatInt(e.Process.PID, 10)
	case strings.HasPrefix(l.Name, "gen"):
		l.Process = "client or pool child"
	}
	if life > 0 {
		l.Process += ", life " + strconv.Itoa(life+1)
	}
	return l
}

// at is when an event happened by the local clock, as far as that of its host is known: that of the one before it if it has
// no timestamp.
func (v SpaceTime) at(e causality.Event, before int64) int64 {
	if e.Stamp.Micros == 0 {
		return before
	}
	return e.Stamp.Micros - v.Offsets[workflow.Host(e.Process.Hostname)]
}

func (v SpaceTime) corrected(host string) bool {
	_, ok := v.Offsets[host]
	return ok
}

// names are the names of tasks, which few of their events have.
func (v SpaceTime) names() map[string]string {
	names := make(map[string]string)
	for n := range v.Graph.Len() {
		if e := v.Graph.Event(causality.Node(n)); e.Name != "" {
			names[e.Task] = e.Name
		}
	}
	return names
}

// event draws one event.
func (v SpaceTime) event(e causality.Event, lane, i int, at int64) spacetime.Event {
	what := strings.TrimPrefix(e.Type, "task-")
	d := spacetime.Event{
		Lane: lane, Text: e.Type, Under: []string{what, "L " + strconv.FormatInt(e.Stamp.Clock, 10)}, At: at, Href: "#moment-" + strconv.Itoa(i+1),
	}
	switch {
	case e.Kind == causality.Command:
		d.Text, d.Under = e.Name, []string{"command"}
	case e.Kind == causality.Reply:
		d.Text, d.Under = "reply: "+e.Name, []string{"reply"}
	case e.Task != "":
		d.Text += " of " + strings.TrimSpace(e.Name+" "+shortID(e.Task))
	}
	if e.Clock > 0 {
		d.Mark = strconv.FormatInt(e.Clock, 10)
	}
	if slices.Contains(v.About, e.Task) {
		d.Class = "about"
	}
	return d
}

// arrows adds the edges between drawn events, and returns which hosts' clocks contradict them.
func (v SpaceTime) arrows(d *spacetime.Diagram, index map[causality.Node]int) []string {
	crossed := make(map[[2]causality.Node]int64)
	pairs := make(map[string]int)
	for _, e := range v.Graph.Inversions() {
		from, to := v.Graph.Event(e.From), v.Graph.Event(e.To)
		crossed[[2]causality.Node{e.From, e.To}] = from.Stamp.Micros - to.Stamp.Micros
		pairs[from.Process.Hostname+" → "+to.Process.Hostname]++
	}
	for _, e := range v.Graph.Edges() {
		from, ok := index[e.From]
		to, also := index[e.To]
		if !ok || !also || e.Kind == causality.SameProcess || e.Kind == causality.Execution { // along a lane
			continue
		}
		if e.Kind == causality.Gossip {
			if from > to { // other edges say the opposite
				continue
			}
			d.Intervals = append(d.Intervals, spacetime.Interval{From: from, To: to, Text: "gossip may have arrived", Shade: true})
			continue
		}
		by := crossed[[2]causality.Node{e.From, e.To}]
		if e.Kind == causality.Lineage && by == 0 && led(v.Graph.In(e.To)) {
			continue
		}
		a := spacetime.Arrow{From: from, To: to, Kind: e.Kind.String(), Text: e.Grade.String(), Weak: e.Grade != causality.Proved}
		if by > 0 {
			a.Crossed = "though its end is stamped " + duration(float64(by)/1e6) + " earlier"
		}
		d.Arrows = append(d.Arrows, a)
	}
	var said []string
	for pair, n := range pairs {
		said = append(said, pair+": "+number(n))
	}
	slices.Sort(said)
	return said
}

// led reports whether one of the edges into an event says more than of which task it came in the end.
func led(in []causality.Edge) bool {
	return slices.ContainsFunc(in, func(e causality.Edge) bool {
		return e.Kind == causality.Message || e.Kind == causality.Child || e.Kind == causality.Retry
	})
}

// before answers which of the drawn events surely came first.
func (v SpaceTime) before(drawn []causality.Node) func(i, j int) bool {
	past := make([]causality.Cone, len(drawn))
	for i, n := range drawn {
		past[i] = v.Graph.Past(n, causality.Proved)
	}
	return func(i, j int) bool { return past[j].Grade(drawn[i]) == causality.Proved }
}

// cut says how much is drawn.
func (d drawnSpaceTime) cut() string {
	if d.Omitted == 0 {
		return ""
	}
	return "The first " + number(len(d.Rows)) + " events are drawn, of " + number(len(d.Rows)+d.Omitted) + "."
}

// ControlHost stands for the host of Umbel where it sends commands.
const ControlHost = "umbel control"

// Part returns v with what it says of the tasks of a workflow that are drawn, by time, and links to others. order is the
// parameter of the address.
func (v SpaceTime) Part(u URLs, w *workflow.Workflow, from, until, before int, order string) SpaceTime {
	if from == 0 && until == len(w.Tasks) {
		return v
	}
	v.Left = "Tasks " + number(from+1) + " to " + number(until) + " of " + number(len(w.Tasks)) + " by time are drawn, and who sent them."
	link := func(from int) templ.SafeURL {
		q := url.Values{"tab": {"spacetime"}, "from": {strconv.Itoa(from)}}
		if from == 0 {
			q.Del("from")
		}
		if order != "" {
			q.Set("order", order)
		}
		return u.path(WorkflowPath(w.Root) + "?" + q.Encode() + "#space-time")
	}
	if from > 0 {
		v.Earlier = link(before)
	}
	if until < len(w.Tasks) {
		v.Later = link(until)
	}
	return v
}

// Children returns v with what it says of how many of the tasks that a task sent are drawn with it.
func (v SpaceTime) Children(drawn, of int) SpaceTime {
	if drawn < of {
		v.Left = "Of the tasks that it sent, " + number(drawn) + " of " + number(of) + " are drawn."
	}
	return v
}
