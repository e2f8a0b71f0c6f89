// Package simulation runs processes that share a lock by package mutex, over a network of its own, and checks after every step
// that the lock excludes. A seed decides everything that happens. It knows neither time nor goroutines.
package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

// Bounds of Options.
const (
	MinProcesses = 2
	MaxProcesses = 100
	MaxCycles    = 1_000_000
)

// Options of a run. In each cycle, every process and every channel gets a turn, in random order.
type Options struct {
	Processes int // 2 to 100
	Cycles    int // 1 to 1,000,000; afterwards the requests that remain are granted and released
	Seed      uint64
	Want      float64 // how probable it is that a process without a request makes one in its turn, 0 to 1
	Hold      float64 // how probable it is that the owner keeps the lock in its turn, 0 to 1
	Delay     float64 // how probable it is that the next message of a channel is not delivered in its turn, 0 to 1
	Fault     Fault
	Observe   func(Event) // nil, or called after every step
}

// Event is one step, in the order in which they happened.
type Event struct {
	Step    int    `json:"step"`  // from 1
	Cycle   int    `json:"cycle"` // from 1
	Kind    string `json:"event"` // request, release, receive
	Process string `json:"process"`
	Clock   int64  `json:"clock"` // of the process after the step
	// From, Message and Received say what was received: sender, kind and number of the message.
	From     string `json:"from,omitempty"`
	Message  string `json:"message,omitempty"`
	Received int    `json:"received,omitempty"`
	Sent     []int  `json:"sent,omitempty"` // numbers of the messages sent
	Granted  bool   `json:"granted,omitempty"`
	Error    string `json:"error,omitempty"` // why the message was not believed
}

// String describes the event in a line.
func (e Event) String() string {
	text := fmt.Sprintf("%s at %d: %s", e.Process, e.Clock, e.Kind)
	if e.From != "" {
		text += " " + e.Message + " of " + e.From
	}
	if e.Granted {
		text += ", takes the lock"
	}
	if e.Error != "" {
		text += ", refused: " + e.Error
	}
	return text
}

// Result counts what a run did.
type Result struct {
	Claims      int // how often the lock was taken
	Releases    int
	Messages    int
	LongestWait int // cycles from a request until it was granted
}

// MessagesPerClaim is 3(n−1) for n processes, 0 if there was no claim.
func (r Result) MessagesPerClaim() float64 {
	if r.Claims == 0 {
		return 0
	}
	return float64(r.Messages) / float64(r.Claims)
}

// InvariantError is an invariant that did not hold.
type InvariantError struct {
	Invariant string
	Cycle     int // of the run, 0 if the run met no schedule that shows the planted fault
	Step      int
	Processes int     // in Schedule, at most as many as in the run
	Schedule  []Event // the shortest way to break an invariant
	Shortest  string  // the invariant that Schedule breaks
	Complete  bool    // no shorter schedule exists; otherwise, no step of it can be left out
}

// Error names the invariant.
func (f *InvariantError) Error() string {
	if f.Cycle == 0 {
		return "the run did not meet the fault, but a schedule breaks: " + f.Invariant
	}
	return fmt.Sprintf("broken in cycle %d, step %d: %s", f.Cycle, f.Step, f.Invariant)
}

// Validate says in a sentence which option is out of range.
func (o Options) Validate() error {
	switch {
	case o.Processes < MinProcesses || o.Processes > MaxProcesses:
		return fmt.Errorf("processes must be %d to %d, not %d", MinProcesses, MaxProcesses, o.Processes)
	case o.Cycles < 1 || o.Cycles > MaxCycles:
		return fmt.Errorf("cycles must be 1 to %d, not %d", MaxCycles, o.Cycles)
	}
	for name, p := range map[string]float64{"want": o.Want, "hold": o.Hold, "delay": o.Delay} {
		if !(p >= 0 && p <= 1) { // NaN too
			return fmt.Errorf("%s is a probability and must be 0 to 1, not %v", name, p)
		}
	}
	switch o.Fault {
	case NoFault, FIFO, Ack, Tie:
		return nil
	}
	return fmt.Errorf("there is no fault %q: use fifo, ack or tie", o.Fault)
}

// Run runs the processes. The error is a *InvariantError if an invariant does not hold, ctx's error if ctx ends first, or that of
// Validate.
func Run(ctx context.Context, o Options) (Result, error) {
	if err := o.Validate(); err != nil {
		return Result{}, err
	}
	r := &run{Options: o, system: newSystem(o.Processes, o.Fault), rng: rand.New(rand.NewPCG(o.Seed, 0)), since: make([]int, o.Processes)}
	err := r.all(ctx)
	result := Result{r.system.claims, r.system.releases, r.system.messages, r.longest}
	if b, ok := errors.AsType[broken](err); ok {
		f := &InvariantError{Invariant: string(b), Cycle: r.cycle, Step: r.system.steps}
		f.explain(o, r.history)
		return result, f
	}
	if err == nil && o.Fault != NoFault { // a short run may not meet a schedule that shows it
		f := &InvariantError{}
		f.explain(o, nil)
		f.Invariant = f.Shortest
		return result, f
	}
	return result, err
}

// run is a run in progress.
type run struct {
	Options
	system  *system
	rng     *rand.Rand
	cycle   int
	since   []int // cycle of each process's request
	longest int
	history []step // up to maxHistory
	turns   []int
	drain   bool
}

// maxHistory is how many steps are kept to make a failing run shorter.
const maxHistory = 1 << 20

func (r *run) all(ctx context.Context) error {
	n := r.Processes
	r.turns = make([]int, n*n) // i·n + i is process i, others are channels
	for i := range r.turns {
		r.turns[i] = i
	}
	for r.cycle = 1; r.cycle <= r.Cycles; r.cycle++ {
		if err := r.turn(ctx); err != nil {
			return err
		}
	}
	for r.drain = true; !r.quiet(); r.cycle++ {
		if err := r.turn(ctx); err != nil {
			return err
		}
	}
	return r.system.finished()
}

// quiet reports whether nobody has the lock and no message is on its way.
func (r *run) quiet() bool {
	for _, queue := range r.system.channels {
		if len(queue) > 0 {
			return false
		}
	}
	return r.system.owner < 0
}

// turn is one cycle.
func (r *run) turn(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.rng.Shuffle(len(r.turns), func(i, j int) { r.turns[i], r.turns[j] = r.turns[j], r.turns[i] })
	for _, t := range r.turns {
		from, to := t/r.Processes, t%r.Processes
		var err error
		if from == to {
			err = r.act(to)
		} else {
			err = r.deliver(from, to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// act lets a process request or release.
func (r *run) act(i int) error {
	switch p := r.system.processes[i]; {
	case p.Held():
		if r.drain || r.rng.Float64() >= r.Hold {
			return r.do(step{kind: release, process: i})
		}
	case !r.drain && r.system.possible(step{kind: request, process: i}):
		if r.rng.Float64() < r.Want {
			return r.do(step{kind: request, process: i})
		}
	}
	return nil
}

// deliver delivers what is on a channel until a message is delayed.
func (r *run) deliver(from, to int) error {
	channel := from*r.Processes + to
	for n := len(r.system.channels[channel]); n > 0; n-- {
		if !r.drain && r.rng.Float64() < r.Delay {
			return nil
		}
		t := step{kind: deliver, process: to, from: from}
		t.second = r.Fault == FIFO && len(r.system.channels[channel]) > 1 && r.rng.IntN(2) == 0
		if err := r.do(t); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) do(t step) error {
	if len(r.history) < maxHistory {
		r.history = append(r.history, t)
	}
	e, err := r.system.apply(t)
	e.Cycle = r.cycle
	if t.kind == request {
		r.since[t.process] = r.cycle
	}
	if e.Granted {
		r.longest = max(r.longest, r.cycle-r.since[t.process])
	}
	if r.Observe != nil {
		r.Observe(e)
	}
	return err
}
