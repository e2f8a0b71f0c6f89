package ingest

import "time"

// Health says how the monitor itself is doing.
type Health struct {
	Broker   BrokerHealth
	Store    StoreHealth
	Notices  []string          // what was found wrong with the history when it was opened, and what to do, a text each
	Ready    bool              // the monitor runs and has restored what the last one left
	Messages uint64            // broker messages read
	Events   uint64            // events folded
	Rejected map[string]uint64 // events or messages that could not be used, by cause
	Latency  time.Duration     // receipt of the newest batch → folded
}

// BrokerHealth is the state of the broker connection.
type BrokerHealth struct {
	URL           string // password masked
	Connected     bool
	Since         time.Time // when Connected last changed
	LastEventAt   time.Time // local receipt time of the newest event, zero if there was none
	LastError     string    // why it is not connected, empty if it is
	NextAttemptAt time.Time // when the next connection is tried, zero if connected
	Attempts      int       // failed tries since it was last connected
	Loss          Loss
}

// StoreHealth says how writing history goes. Nothing that waits is acknowledged to the broker.
type StoreHealth struct {
	LastError     string    // why the newest try to write failed, empty if it did not
	FailedAt      time.Time // when that was
	Since         time.Time // when writing began to fail, zero if it does not
	NextAttemptAt time.Time // when it is tried again, zero if it does not fail
	PendingEvents int       // events that are folded and not on disk
	UnsavedTasks  int       // tasks that have changed since they were saved; their events may be on disk
	ActiveBytes   int64     // bytes of the history that active tasks take, about, 0 while it is not too large
	Oversized     bool      // those alone are more than the history may have
	Backpressure  bool      // so much waits that no more is received
}

// Rates are per second, over the last 10 full seconds, by when events were received. Series hold one value a second,
// oldest first, for the last 60 full seconds.
type Rates struct {
	Events, Received, Succeeded, Failed, Retried float64
	Series                                       Series
}

// Series are per-second counts, oldest first, all of one length.
type Series struct {
	Received, Succeeded, Failed, Retried []float64
}
