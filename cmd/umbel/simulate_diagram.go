package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	mutexsim "github.com/umbelhq/umbel/clock/mutex/simulation"
	"github.com/umbelhq/umbel/internal/spacetime"
)

// maxDrawn is how many steps are kept to be drawn: arrows may end after the last event that is.
const maxDrawn = 2 * spacetime.MaxEvents

// draw writes the beginning of the run, or the schedule that broke an invariant, as a page.
func (c *simulateMutexCmd) draw(ctx context.Context, events []mutexsim.Event, total int, r mutexsim.Result, f *mutexsim.InvariantError) (err error) {
	d := spacetime.Diagram{
		Title: fmt.Sprintf("Mutual exclusion of %d processes", c.Processes),
		Notes: []string{
			fmt.Sprintf("Seed %d, %d cycles: %d claims, %g messages each; the longest wait was %d cycles.", c.Seed, c.Cycles, r.Claims, r.MessagesPerClaim(), r.LongestWait),
			"Numbers are the Lamport clocks of processes. A bar is the time in which a process has the lock.",
		},
	}
	if f != nil {
		d.Title = "Broken: " + f.Shortest
		which := "no shorter schedule breaks an invariant"
		if !f.Complete {
			which = "no step can be left out"
		}
		total = len(f.Schedule)
		d.Notes = []string{fmt.Sprintf("%d processes, %d steps; %s.", f.Processes, len(f.Schedule), which), d.Notes[1]}
		events = f.Schedule
	}
	lanes := func(name string) int {
		i, _ := slices.BinarySearch(d.Lanes, name)
		return i
	}
	for _, e := range events {
		if i, known := slices.BinarySearch(d.Lanes, e.Process); !known {
			d.Lanes = slices.Insert(d.Lanes, i, e.Process)
		}
	}
	sent, owned := make(map[int]int), make(map[string]int) // event by message; interval by process
	for i, e := range events {
		text := e.Kind
		if e.From != "" {
			text = "receives " + e.Message + " of " + e.From
		}
		if e.Granted {
			text += ", takes the lock"
			owned[e.Process] = len(d.Intervals)
			d.Intervals = append(d.Intervals, spacetime.Interval{From: i, To: -1, Text: "owner"})
		}
		d.Events = append(d.Events, spacetime.Event{
			Lane: lanes(e.Process), Mark: strconv.FormatInt(e.Clock, 10), Text: text, Alert: f != nil && i == len(events)-1,
		})
		for _, m := range e.Sent {
			sent[m] = i
		}
		if from, known := sent[e.Received]; known {
			d.Arrows = append(d.Arrows, spacetime.Arrow{From: from, To: i, Kind: e.Message})
		}
		if e.Kind == "release" {
			d.Intervals[owned[e.Process]].To = i
		}
	}
	d.Total = total
	file, err := os.Create(c.HTML)
	if err != nil {
		return usageError{fmt.Errorf("--html: %w", err)}
	}
	w := bufio.NewWriter(file)
	defer func() { err = errors.Join(err, w.Flush(), file.Close()) }()
	return spacetime.Document(ctx, w, d)
}
