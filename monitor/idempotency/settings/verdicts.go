package settings

import (
	"slices"
	"strings"
	"time"
)

// verdicts gathers what rules find.
type verdicts struct {
	cluster Cluster
	limit   map[string]time.Duration // by transport
	found   map[string]*Finding      // by cause
	needs   map[string]time.Duration // by cause, the largest
	facts   map[string]map[string]string
	workers map[string]map[string]bool
}

// judge applies all rules to the tasks of a group.
func (v *verdicts) judge(g *group) {
	if v.facts == nil {
		v.needs, v.facts, v.workers = map[string]time.Duration{}, map[string]map[string]string{}, map[string]map[string]bool{}
	}
	list := rules()
	if g.Pickles {
		v.add(&list[slices.IndexFunc(list, func(r rule) bool { return r.Cause == "pickled-arguments" })], "", verdict{risk: Possible}, g)
	}
	for t := range g.Tasks {
		s := subject{group: g, task: &g.Tasks[t], hold: v.limit[g.Transport]}
		s.effective, s.observed = g.effective(s.task), v.cluster.Tasks[s.task.Name]
		for i := range list {
			if found := list[i].judge(s); found.applies {
				v.add(&list[i], s.task.Name, found, g)
			}
		}
	}
}

// add notes that a rule applies to a task on the workers of a group.
func (v *verdicts) add(r *rule, task string, found verdict, g *group) {
	f := v.found[r.Cause]
	if f == nil {
		f = &Finding{}
		*f = r.Finding
		f.Risk = Possible
		v.found[r.Cause], v.facts[r.Cause], v.workers[r.Cause] = f, map[string]string{}, map[string]bool{}
	}
	if found.risk == Exceeded {
		f.Risk = Exceeded
	}
	if found.need >= v.needs[r.Cause] {
		v.needs[r.Cause] = found.need
		if r.value != nil {
			f.Value = r.value(roundUp(found.need))
		}
	}
	if task != "" {
		v.facts[r.Cause][task] = found.detail
	}
	for _, name := range g.names {
		v.workers[r.Cause][name] = true
	}
}

// list returns the findings.
func (v *verdicts) list() []Finding {
	var list []Finding
	for cause, f := range v.found {
		for name, detail := range v.facts[cause] {
			f.Tasks = append(f.Tasks, TaskFact{name, detail})
		}
		slices.SortFunc(f.Tasks, func(a, b TaskFact) int { return strings.Compare(a.Name, b.Name) })
		f.Workers = sortedKeys(v.workers[cause])
		list = append(list, *f)
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
