// Package settings judges the settings of Celery workers: where they let a task be lost or run twice. It knows the
// rules alone; it reads nothing.
package settings

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Cluster is what is known of the workers on one broker and of their tasks.
type Cluster struct {
	Workers []Worker
	Tasks   map[string]Observed // by name; what is missing was never observed
}

// Worker is a worker as it describes itself.
type Worker struct {
	Name    string
	Version string // of Celery, such as 5.7.0; empty if unknown
	// Why says why parts of it are unknown, one sentence each, none if all is known.
	Why []string
	// Conf are its settings by their present names, defaults included. What is missing is unknown.
	Conf map[string]json.RawMessage
	// Tasks are those that it has registered, nil if unknown. Workers that have the same ones should share one slice.
	Tasks     []Task
	Transport string // redis or amqp; empty if unknown
	// VisibilityTimeout is that of its connection to Redis, 0 if it sets none; set if Transport is.
	VisibilityTimeout time.Duration
	Pool              string // prefork, threads, solo, gevent, eventlet; empty if unknown
	Slots, Prefetch   int64  // tasks that it runs at once, messages that it takes at once; 0 if unknown
	// TimeLimit is that of its command line, 0 if it has none.
	TimeLimit time.Duration
	// Pickles reports that its replies are pickles, so that task_serializer is pickle and nothing else is known.
	Pickles bool
}

// Task is a task that a worker has registered.
type Task struct {
	Name string
	// Attributes of its class, as Python prints them. Those that are None are missing.
	Attributes map[string]string
}

// Observed is what the history shows of the tasks of one name.
type Observed struct {
	Runs         int64         // run times known
	P99, Longest time.Duration // of them
	Delay        time.Duration // the longest from when a worker received a task until its ETA, 0 if none had one
}

// Effect is what can happen to a task.
type Effect string

// The effects.
const (
	Lost  Effect = "lost"  // it is never run to its end
	Twice Effect = "twice" // it is run more than once
	Other Effect = "other" // it depends on which worker takes it, or the lock on its arguments fails
)

// Risk is how much speaks for a finding.
type Risk string

// Risks, least first. What has happened, the history says.
const (
	Possible Risk = "possible" // the settings allow it
	Exceeded Risk = "exceeded" // what was observed is beyond what the settings allow for
)

// Finding is one cause with all workers and tasks that it concerns.
type Finding struct {
	Cause       string // lower case with hyphens, unique in a report
	Effect      Effect
	Risk        Risk
	Title       string // what is set
	Consequence string // what can happen, in sentences
	Setting     string // that changes it
	Value       string // to set, in Python; empty if workers disagree
	Cost        string // of the change
	Tasks       []TaskFact
	Workers     []string // sorted
	// Query matches tasks of any name to which it happened, empty if the history cannot tell.
	Query string
	// Values are who has which value, of a setting on which workers disagree.
	Values []Value
}

// TaskFact is a task that a finding concerns.
type TaskFact struct {
	Name   string
	Detail string // figures, such as: p99 of run times 40 s; empty if there are none
}

// Value is a value with the workers that have it.
type Value struct {
	Value   string
	Workers []string // sorted
}

// Unknown are workers of which something is unknown.
type Unknown struct {
	Why     string // a sentence
	Workers []string
}

// Report is the outcome of Judge.
type Report struct {
	Findings []Finding // those that are exceeded first, then by how many tasks they concern
	Unknown  []Unknown
	Tasks    []TaskRow // by name
	Workers  int       // judged
}

// group are workers that have the same settings and tasks.
type group struct {
	Worker

	names     []string    // of the workers
	effective []effective // of their tasks
	base      effective   // of a task that sets nothing itself
}

// Judge applies all rules.
func Judge(c Cluster) Report {
	groups := grouped(c.Workers)
	v := newVerdicts(c, groups)
	for i := range groups {
		v.judge(i)
	}
	r := Report{Findings: v.list(), Unknown: unknown(groups), Workers: len(c.Workers)}
	r.Findings = append(r.Findings, refusals(groups)...)
	r.Findings = append(r.Findings, disagreements(groups)...)
	slices.SortStableFunc(r.Findings, compare)
	r.Tasks = rows(groups, c.Tasks)
	return r
}

// compare orders findings, worst first.
func compare(a, b Finding) int {
	rank := func(f Finding) int {
		switch {
		case f.Risk == Exceeded:
			return 0
		case f.Effect != Other:
			return 1
		}
		return 2
	}
	if d := rank(a) - rank(b); d != 0 {
		return d
	}
	if d := len(b.Tasks) - len(a.Tasks); d != 0 {
		return d
	}
	return strings.Compare(a.Cause, b.Cause)
}

// grouped joins workers with equal settings and the same slice of tasks.
func grouped(workers []Worker) []group {
	type key struct {
		tasks *Task
		n     int
		rest  string
	}
	at := map[key]int{}
	var list []group
	for _, w := range workers {
		same := w
		same.Name, same.Tasks = "", nil
		rest, err := json.Marshal(same)
		k := key{n: len(w.Tasks), rest: string(rest)}
		if len(w.Tasks) > 0 {
			k.tasks = &w.Tasks[0]
		}
		i, ok := at[k]
		if !ok || err != nil {
			i = len(list)
			at[k], list = i, append(list, group{Worker: w})
		}
		list[i].names = append(list[i].names, w.Name)
	}
	for i := range list {
		g := &list[i]
		g.base = g.settingsOf(&Task{})
		for t := range g.Tasks {
			g.effective = append(g.effective, g.settingsOf(&g.Tasks[t]))
		}
	}
	return list
}

// workerSets returns the names of the workers of several groups.
type workerSets struct {
	groups []group
	known  map[string][]string
}

// of returns the names in the groups of these indexes, sorted. Equal arguments give one slice, which must not be changed.
func (s *workerSets) of(indexes []int) []string {
	key := fmt.Sprint(indexes)
	if names, ok := s.known[key]; ok {
		return names
	}
	var names []string
	for _, i := range indexes {
		names = append(names, s.groups[i].names...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	s.known[key] = names
	return names
}

// unknown says what is not known of which workers.
func unknown(groups []group) []Unknown {
	byWhy := map[string][]string{}
	var order []string
	add := func(why string, workers []string) {
		if byWhy[why] == nil {
			order = append(order, why)
		}
		byWhy[why] = append(byWhy[why], workers...)
	}
	for _, g := range groups {
		for _, why := range g.Why {
			add(why, g.names)
		}
		if g.Conf == nil {
			continue
		}
		var missing []string
		for _, name := range judged() {
			if _, ok := g.Conf[name]; !ok && !g.predates(name) {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			add("Not reported: "+strings.Join(missing, ", ")+".", g.names)
		}
	}
	var list []Unknown
	for _, why := range order {
		slices.Sort(byWhy[why])
		list = append(list, Unknown{why, slices.Compact(byWhy[why])})
	}
	return list
}

// judged are the settings that rules ask for.
func judged() []string {
	return []string{
		"accept_content", "result_expires", "task_acks_late", "task_acks_on_failure", "task_acks_on_timeout", "task_ignore_result",
		"task_reject_on_worker_lost", "task_retry_on_worker_lost", "task_serializer", "task_time_limit",
		"worker_cancel_long_running_tasks_on_connection_loss", "worker_deduplicate_successful_tasks", "worker_prefetch_multiplier",
	}
}
