// Package state folds Celery events into a model of a cluster: tasks with their executions, workers, counts, and
// queries on them. It does no I/O, reads no wall clock, starts no goroutine and logs nothing; whoever owns a
// Cluster locks it.
package state

import (
	"hash/maphash"
	"strings"

	"github.com/umbelhq/umbel/clock"
)

// Options of a Cluster. The zero value is useful.
type Options struct {
	MaxTasks int   // tasks kept in memory; 0 means 1,000,000
	MaxText  int64 // bytes of args, results and tracebacks kept; 0 means 512 MiB
	Rules    Rules // zero value: Causal
	Track    bool  // tasks are saved to a store: TakeUnsaved returns those to save, and only saved tasks are evicted
}

// Rules chooses how the events of a task become its state.
type Rules uint8

// The rule sets of Umbel. Causal makes the state of a task a function of the set of its events;
// Celery repeats celery.events.state event for event, oddities included.
const (
	Causal Rules = iota
	Celery
)

// rules is the implementation of a rule set.
type rules interface {
	// stamp returns the repaired clock of an event.
	stamp(e *Event) int64
	// duplicate returns the record of the task that is the same event, 0 if there is none.
	duplicate(r *row, e *record) uint32
	// summarize folds the records of a task, in order of arrival, into what its row shows.
	summarize(records []*record) summary
	// fill folds the records of a task into a full copy of it.
	fill(t *Task, records []*record)
}

// Bounds of what senders of events can make grow. Beyond a bound, new keys become «(other)».
const (
	defaultMaxTasks = 1_000_000
	defaultMaxText  = 512 << 20
	maxRoutes       = 50_000
	maxHosts        = 50_000
	maxProcesses    = 100_000
	maxStates       = 1_000
	maxWorkers      = 5_000
	maxRecords      = 64  // events kept of one task; beyond it, old custom ones make room
	maxSymbol       = 512 // bytes of a name
	otherKey        = "(other)"
)

// Cluster is the model of one Celery cluster. It is not safe for concurrent use: one writer calls Apply, Expire
// and Shift; readers share a lock with it.
type Cluster struct {
	options Options
	rules   rules
	clock   clock.Receiver
	version uint64
	now     int64 // newest local time, µs

	index     taskIndex
	recent    [recentRows]uint32 // rows of the newest events, by recentAt
	rows      slab[row]
	records   slab[record] // of rows that are not packed
	packs     packs
	relations slab[relation]
	families  map[taskKey]uint32 // parent → first child
	hashedIDs map[taskKey]string // ids that are no UUIDs
	byStamp   taskList
	// unpackedOnly is set where tasks are read once and dropped: packing would not pay.
	unpackedOnly bool
	text         *textLog

	processes *table[clock.Process]
	hosts     *table[string]
	routes    *table[route]
	states    stateNames
	workers   map[string]*worker
	clients   map[string]bound // lower bounds of the offsets of clients' clocks, by hostname
	forgotten map[string]bool  // names of forgotten workers that may still be in the store
	senders   [recentSenders]sender

	tally      tally
	evicted    uint64
	lateEvents uint64 // behind the watermark of their process
	dropped    uint64 // events dropped because their task had too many

	concluded map[taskKey]Conclusion // of rows with a flag of concluded
	absent    map[taskKey]absence    // unfinished tasks that their worker did not list in its last inspection
	reviewed  int64                  // clock of the newest task that the last Reconcile looked at
	listed    map[taskKey]int64      // tasks that events do not place on the worker that listed them: when, µs

	unsaved       fifo     // rows that changed since they were taken to be saved, longest first
	saving        []uint32 // rows taken to be saved
	lowWaterMark  *Position
	evictedMicros int64 // at least the greatest time of a task that is in the store only
	evictAbove    int   // number of tasks above which to look for some to evict

	incoming record // of the event being applied: here, since the rules could let it escape
	scratch  []*record
	packing  []byte
	codec    codec
	input    savedReader
	loaded   []SavedEvent
}

// New returns an empty cluster.
func New(o Options) *Cluster {
	if o.MaxTasks <= 0 {
		o.MaxTasks = defaultMaxTasks
	}
	if o.MaxText <= 0 {
		o.MaxText = defaultMaxText
	}
	c := &Cluster{
		options:    o,
		clock:      clock.Receiver{MaxProcesses: maxProcesses},
		families:   make(map[taskKey]uint32),
		hashedIDs:  make(map[taskKey]string),
		text:       newTextLog(o.MaxText),
		processes:  newTable(maxProcesses, clock.Process{Hostname: otherKey}, cloneProcess),
		hosts:      newTable(maxHosts, otherKey, strings.Clone),
		routes:     newTable(maxRoutes, route{name: otherKey}, cloneRoute),
		states:     newStateNames(),
		workers:    make(map[string]*worker),
		clients:    make(map[string]bound),
		forgotten:  make(map[string]bool),
		evictAbove: o.MaxTasks,

		concluded: make(map[taskKey]Conclusion),
		absent:    make(map[taskKey]absence),
		listed:    make(map[taskKey]int64),
	}
	c.byStamp.less = c.rowBefore
	c.packs.init()
	c.index.rows, c.index.seed = &c.rows, maphash.MakeSeed()
	if o.Rules == Celery {
		c.rules = &celeryRules{c: c}
	} else {
		c.rules = &causalRules{c: c, fold: causal{processes: c.processes}}
	}
	return c
}

func cloneProcess(l clock.Process) clock.Process {
	l.Hostname = strings.Clone(l.Hostname)
	return l
}

func cloneRoute(c route) route {
	return route{strings.Clone(c.name), strings.Clone(c.queue), strings.Clone(c.exchange), strings.Clone(c.routingKey)}
}

// Version rises with every change.
func (c *Cluster) Version() uint64 { return c.version }

// Clock returns the receiver's Lamport clock.
func (c *Cluster) Clock() int64 { return c.clock.Value() }
