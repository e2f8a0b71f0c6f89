package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	mutexsim "github.com/umbelhq/umbel/clock/mutex/simulation"
)

// simulateMutexCmd runs processes that share a lock by Lamport's algorithm.
type simulateMutexCmd struct {
	Processes int     `default:"10" help:"Number of processes, 2 to 100." placeholder:"N"`
	Cycles    int     `default:"10000" help:"Turns of every process and channel, 1 to 1000000." placeholder:"N"`
	Seed      uint64  `default:"1" help:"Another seed is another run." placeholder:"N"`
	Want      float64 `default:"0.1" help:"Probability that a process requests the lock in its turn." placeholder:"P"`
	Hold      float64 `default:"0.5" help:"Probability that the owner keeps the lock in its turn." placeholder:"P"`
	Delay     float64 `default:"0.3" help:"Probability that a message is not delivered in a turn of its channel." placeholder:"P"`
	Break     string  `enum:",fifo,ack,tie" help:"Plant a fault, to see that it is found: fifo, messages overtake each other; ack, the network acknowledges requests; tie, processes do not agree who is first." placeholder:"FAULT"`
	Trace     string  `help:"Write every step to a file, one JSON object per line." placeholder:"FILE"`
	HTML      string  `name:"html" help:"Write the beginning of the run, or what broke, as a space-time diagram." placeholder:"FILE"`
	JSON      bool    `name:"json" help:"Print the counts as one line of JSON."`
	Verbose   bool    `short:"v" help:"Print every claim and release on standard error."`
}

// Run prints what happened. Its error names the invariant that broke.
func (c *simulateMutexCmd) Run(ctx context.Context, s streams, _ *slog.Logger) (err error) {
	o := mutexsim.Options{
		Processes: c.Processes, Cycles: c.Cycles, Seed: c.Seed, Want: c.Want, Hold: c.Hold, Delay: c.Delay, Fault: mutexsim.Fault(c.Break),
	}
	if err := o.Validate(); err != nil {
		return usageError{fmt.Errorf("--%w", err)}
	}
	var observers []func(mutexsim.Event)
	if c.Trace != "" {
		f, err := os.Create(c.Trace)
		if err != nil {
			return usageError{fmt.Errorf("--trace: %w", err)}
		}
		w := bufio.NewWriter(f)
		defer func() { err = errors.Join(err, w.Flush(), f.Close()) }()
		encoder := json.NewEncoder(w)
		observers = append(observers, func(e mutexsim.Event) { _ = encoder.Encode(e) })
	}
	var drawn []mutexsim.Event
	var total int
	if c.HTML != "" {
		observers = append(observers, func(e mutexsim.Event) {
			if total++; len(drawn) < maxDrawn {
				drawn = append(drawn, e)
			}
		})
	}
	if c.Verbose {
		observers = append(observers, func(e mutexsim.Event) {
			if e.Granted || e.Kind == "release" {
				fmt.Fprintf(s.err, "cycle %d, step %d: %s\n", e.Cycle, e.Step, e)
			}
		})
	}
	o.Observe = func(e mutexsim.Event) {
		for _, observe := range observers {
			observe(e)
		}
	}
	result, err := mutexsim.Run(ctx, o)
	failure, failed := errors.AsType[*mutexsim.InvariantError](err)
	if err != nil && !failed {
		return err
	}
	c.print(s.out, result)
	if c.HTML != "" {
		if err := c.draw(ctx, drawn, total, result, failure); err != nil {
			return err
		}
	}
	if failed {
		writeSchedule(s.err, failure)
		return failure
	}
	return nil
}

func (c *simulateMutexCmd) print(w io.Writer, r mutexsim.Result) {
	if c.JSON {
		fmt.Fprintf(w, `{"claims": %d, "releases": %d, "messages": %d, "messages_per_claim": %g, "longest_wait": %d}`+"\n",
			r.Claims, r.Releases, r.Messages, r.MessagesPerClaim(), r.LongestWait)
		return
	}
	fmt.Fprintf(w, "claims              %d\nreleases            %d\nmessages            %d\n", r.Claims, r.Releases, r.Messages)
	fmt.Fprintf(w, "messages per claim  %g, 3(n-1) is %d\nlongest wait        %d cycles\n", r.MessagesPerClaim(), 3*(c.Processes-1), r.LongestWait)
}

// writeSchedule prints the steps that break an invariant.
func writeSchedule(w io.Writer, f *mutexsim.InvariantError) {
	which := "The shortest schedule"
	if !f.Complete {
		which = "A schedule that cannot be cut further"
	}
	fmt.Fprintf(w, "%s, of %d processes, after which this does not hold: %s\n", which, f.Processes, f.Shortest)
	for _, e := range f.Schedule {
		fmt.Fprintf(w, "%4d  %s\n", e.Step, e)
	}
}
