package duplicates

import "github.com/umbelhq/umbel/state"

// Judge returns the verdicts on tasks of one call, newest pair first: on each run with the one that it repeats.
func Judge(tasks []state.Task, o Options) []Pair {
	return nil
}
