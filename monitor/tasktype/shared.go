package tasktype

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// Bounds of a sample.
const (
	MaxSampled   = 1_000 // newest tasks of a name
	MaxFailures  = 500   // newest failed ones
	maxTraits    = 10    // of one comparison
	maxValue     = 64    // bytes of a value of an argument; longer ones are left out
	maxArguments = 50    // values of the arguments of one task
	maxDepth     = 3     // levels of arguments
	maxRepr      = 8 << 10
	maxDistinct  = 20_000 // values of one comparison; further ones are left out
)

// Sample is what was found in the newest tasks of a type.
type Sample struct {
	Tasks    int          // that were read
	Slowest  []state.Task // of those that succeeded, slowest first: outliers
	Failures Comparison   // of failed tasks with succeeded ones
	Slow     Comparison   // of the slowest twentieth with the others that succeeded
}

// Comparison is what tasks share that others do not.
type Comparison struct {
	Selected, Others int // tasks
	Traits           []Trait
}

// Trait is a value that is more frequent among the selected tasks than among the others, by more than chance explains: the
// intervals of both shares, with 99 % confidence, do not overlap.
type Trait struct {
	Field                string // worker, queue, retries, args[0], kwargs.user.id
	Value                string // JSON if it is of an argument
	Selected, SelectedOf int    // tasks with the value, of those whose value is known
	Others, OthersOf     int
}

// SelectedShare and OthersShare are parts of the tasks, 0 to 1.
func (t *Trait) SelectedShare() float64 { return float64(t.Selected) / float64(max(t.SelectedOf, 1)) }

// OthersShare is the part of the other tasks that have the value.
func (t *Trait) OthersShare() float64 { return float64(t.Others) / float64(max(t.OthersOf, 1)) }

// ReadSample reads the newest tasks of a name, and the newest failed ones, among those that a query finds.
func ReadSample(ctx context.Context, tasks rollup.Tasks, name string, among query.Query, outliers int) (Sample, error) {
	named := query.New(query.Equal(query.Name, name)).And(among)
	newest, _, err := newestTasks(ctx, tasks, named, MaxSampled)
	if err != nil {
		return Sample{}, err
	}
	failed, _, err := newestTasks(ctx, tasks, named.And(query.New(query.Equal(query.State, string(state.Failure)))), MaxFailures)
	if err != nil {
		return Sample{}, err
	}
	s := Sample{Tasks: len(newest)}
	var succeeded []state.Task
	for i := range newest {
		if newest[i].State == state.Success {
			succeeded = append(succeeded, newest[i])
		}
	}
	s.Failures = Compare(failed, succeeded)
	timed := slices.DeleteFunc(succeeded, func(t state.Task) bool { return t.RuntimeSeconds == nil })
	slices.SortStableFunc(timed, func(a, b state.Task) int { return cmp.Compare(*b.RuntimeSeconds, *a.RuntimeSeconds) })
	slow := (len(timed) + 19) / 20
	s.Slow = Compare(timed[:slow], timed[slow:])
	s.Slowest = slices.Clone(timed[:min(slow, outliers)])
	return s, nil
}

// newestTasks returns the tasks that changed last, and whether these are all.
func newestTasks(ctx context.Context, tasks rollup.Tasks, q query.Query, most int) (list []state.Task, whole bool, err error) {
	r := history.TaskRequest{Query: q, Limit: min(most, 500)}
	for len(list) < most {
		page, err := tasks.Tasks(ctx, r)
		if err != nil {
			return nil, false, fmt.Errorf("read newest tasks: %w", err)
		}
		list = append(list, page.Tasks...)
		if r.From = page.Next; r.From == nil || page.Searched > 0 {
			whole = page.Searched == 0
			break
		}
	}
	return list[:min(len(list), most)], whole && len(list) <= most, nil
}

type pair struct{ field, value string }

// group counts the traits of tasks.
type group struct {
	tasks int
	known map[string]int // by field
	have  map[pair]int
}

// Compare returns what tasks share that others do not, the greatest difference of shares first.
func Compare(selected, others []state.Task) Comparison {
	return compare(count(traitsOf(selected)), count(traitsOf(others)))
}

func compare(s, o group) Comparison {
	c := Comparison{Selected: s.tasks, Others: o.tasks}
	for p, n := range s.have {
		t := Trait{p.field, p.value, n, s.known[p.field], o.have[p], o.known[p.field]}
		low, _ := interval(t.Selected, t.SelectedOf)
		if _, high := interval(t.Others, t.OthersOf); n >= 3 && t.OthersOf > 0 && low > high {
			c.Traits = append(c.Traits, t)
		}
	}
	slices.SortFunc(c.Traits, func(a, b Trait) int {
		return cmp.Or(
			cmp.Compare(b.SelectedShare()-b.OthersShare(), a.SelectedShare()-a.OthersShare()), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Value, b.Value),
		)
	})
	c.Traits = c.Traits[:min(len(c.Traits), maxTraits)]
	return c
}

// count counts traits, those of each task together.
func count(tasks []map[string]string) group {
	g := group{tasks: len(tasks), known: map[string]int{}, have: map[pair]int{}}
	for _, has := range tasks {
		for field, value := range has {
			g.known[field]++
			if p := (pair{field, value}); len(g.have) < maxDistinct || g.have[p] > 0 {
				g.have[p]++
			}
		}
	}
	return g
}

// traitsOf returns the values of the fields of tasks.
func traitsOf(tasks []state.Task) []map[string]string {
	list := make([]map[string]string, len(tasks))
	for i := range tasks {
		list[i] = traits(&tasks[i])
	}
	return list
}

// traits returns the value of each field of a task.
func traits(t *state.Task) map[string]string {
	has := map[string]string{}
	add := func(field, value string) {
		if _, ok := has[field]; !ok {
			has[field] = value
		}
	}
	if t.Worker != nil {
		add("worker", *t.Worker)
	}
	if t.Queue != nil {
		add("queue", *t.Queue)
	}
	if t.Retries != nil {
		add("retries", strconv.FormatInt(*t.Retries, 10))
	}
	arguments(t.Args, "args", add)
	arguments(t.Kwargs, "kwargs", add)
	return has
}

// arguments calls add with the values of arguments, if their repr is whole and consists of literals.
func arguments(repr *string, field string, add func(field, value string)) {
	if repr == nil || len(*repr) > maxRepr {
		return
	}
	text, ok := celery.ParseRepr(*repr)
	if !ok {
		return
	}
	left := maxArguments
	var walk func(path string, v json.RawMessage, depth int)
	walk = func(path string, v json.RawMessage, depth int) {
		if left == 0 || len(v) == 0 {
			return
		}
		switch {
		case v[0] == '[' && depth < maxDepth:
			var items []json.RawMessage
			_ = json.Unmarshal(v, &items) // is valid
			for i, item := range items {
				walk(path+"["+strconv.Itoa(i)+"]", item, depth+1)
			}
		case v[0] == '{' && depth < maxDepth:
			var items map[string]json.RawMessage
			_ = json.Unmarshal(v, &items)
			for _, key := range slices.Sorted(maps.Keys(items)) {
				if len(key) <= maxValue {
					walk(path+"."+key, items[key], depth+1)
				}
			}
		case len(v) <= maxValue:
			left--
			add(path, string(v))
		}
	}
	walk(field, text, 0)
}

// interval is Wilson's for a share of n in of, with 99 % confidence.
func interval(n, of int) (low, high float64) {
	if of == 0 {
		return 0, 1
	}
	const z = 2.576
	total, p := float64(of), float64(n)/float64(of)
	middle := (p + z*z/(2*total)) / (1 + z*z/total)
	half := z / (1 + z*z/total) * math.Sqrt(p*(1-p)/total+z*z/(4*total*total))
	return middle - half, middle + half
}
