package outboxwatch

import "time"

// MaxCount is how far rows are counted exactly.
const MaxCount = 100_000

// Stats sums up an outbox. All of it is of one moment, by the clock of the database.
type Stats struct {
	Now time.Time // of the database

	States      map[State]Count // all states
	DeadLetters Count

	// Of the Window rows of each kind that are first by their index.
	OldestReady   time.Time // CreatedAt of the oldest row that a relay may take; zero if there is none
	ReadySince    time.Time // since when the first such row has been ready
	FirstReady    int64     // its id
	LastTaken     time.Time // newest UpdatedAt; zero if unknown
	Retries       Count     // sum of the retries of rows that have failed
	TopFailing    []NameCount
	Reasons       []NameCount // of dead letters, by failure_reason
	DeadNames     []NameCount // of dead letters, by name
	OldestDead    time.Time   // DeadAt
	MissingGrants []string    // statements that would let Umbel requeue and purge dead letters; nil if it may
	ReadOnly      string      // why nothing can be changed whatever is granted, such as a read-only file; empty if it can
	Server        string      // such as PostgreSQL 16.3
}

// NameCount counts by a name.
type NameCount struct {
	Name string
	N    int
}

// Ready counts the rows that a relay may take now, which the package calls the depth of the queue.
func (s Stats) Ready() Count { return sum(s.States[Pending], s.States[Due], s.States[Stale]) }

// Total counts all rows of the outbox.
func (s Stats) Total() Count {
	var all []Count
	for _, state := range States() {
		all = append(all, s.States[state])
	}
	return sum(all...)
}

func sum(list ...Count) Count {
	total := Count{Exact: true}
	for _, c := range list {
		total.N += c.N
		total.Exact = total.Exact && c.Exact
	}
	return total
}
