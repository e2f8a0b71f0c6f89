package settings

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// verdicts gathers what rules find.
type verdicts struct {
	cluster Cluster
	groups  []group
	rules   []rule
	limit   map[string]time.Duration // by transport
	found   map[string]*gathered     // by cause
}

// gathered is a finding with what it is made of.
type gathered struct {
	Finding

	need   time.Duration     // the largest
	facts  map[string]string // by task
	groups map[int]bool
}

func newVerdicts(c Cluster, groups []group) *verdicts {
	return &verdicts{cluster: c, groups: groups, rules: rules(), limit: deliveryLimit(c.Workers), found: map[string]*gathered{}}
}

// judge applies all rules to the tasks of a group.
func (v *verdicts) judge(index int) {
	g := &v.groups[index]
	if g.Pickles {
		pickled := slices.IndexFunc(v.rules, func(r rule) bool { return r.Cause == "pickled-arguments" })
		v.add(&v.rules[pickled], "", verdict{risk: Possible}, index)
	}
	s := subject{Worker: &g.Worker, hold: v.limit[g.Transport], cancels: g.flag(cancelOnLoss), deduplicates: g.flag(deduplicate)}
	for t := range g.Tasks {
		s.task, s.effective, s.observed = &g.Tasks[t], &g.effective[t], v.cluster.Tasks[g.Tasks[t].Name]
		for i := range v.rules {
			if found := v.rules[i].judge(&s); found.applies {
				v.add(&v.rules[i], s.task.Name, found, index)
			}
		}
	}
}

// add notes that a rule applies to a task on the workers of a group.
func (v *verdicts) add(r *rule, task string, found verdict, group int) {
	f := v.found[r.Cause]
	if f == nil {
		f = &gathered{Finding: r.Finding, facts: map[string]string{}, groups: map[int]bool{}}
		f.Risk, f.Query = Possible, strings.ReplaceAll(r.Query, "{hold}", fmt.Sprintf("%gs", v.limit[v.groups[group].Transport].Seconds()))
		v.found[r.Cause] = f
	}
	if found.risk == Exceeded {
		f.Risk = Exceeded
	}
	if r.value != nil && found.need >= f.need {
		f.need, f.Value = found.need, r.value(roundUp(found.need))
	}
	if task != "" {
		f.facts[task] = found.detail
	}
	f.groups[group] = true
}

// list returns the findings.
func (v *verdicts) list() []Finding {
	list := make([]Finding, 0, len(v.found))
	for _, g := range v.found {
		f := g.Finding
		for _, name := range slices.Sorted(maps.Keys(g.facts)) {
			f.Tasks = append(f.Tasks, TaskFact{name, g.facts[name]})
		}
		for i := range g.groups {
			f.Workers = append(f.Workers, v.groups[i].names...)
		}
		slices.Sort(f.Workers)
		f.Workers = slices.Compact(f.Workers)
		list = append(list, f)
	}
	return list
}

// roundUp returns a duration that is easy to read and not shorter: of whole minutes, from an hour on of whole hours.
func roundUp(d time.Duration) time.Duration {
	unit := time.Second
	switch {
	case d >= time.Hour:
		unit = time.Hour
	case d >= time.Minute:
		unit = time.Minute
	}
	return (d + unit - 1) / unit * unit
}

// short writes a duration with at most two units: 1h30m, 40s, 250ms.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour:
		d = d.Round(time.Minute)
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(100 * time.Millisecond)
	default:
		return d.Round(time.Millisecond).String()
	}
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}
