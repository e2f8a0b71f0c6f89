package state

import "github.com/umbelhq/umbel/clock"

// Kind is what an event says happened. The zero Kind is invalid.
type Kind uint8

// The event kinds that change the state. TaskCustom is any other task-* event, Other any event
// of a group that is neither task nor worker.
const (
	TaskSent Kind = iota + 1
	TaskReceived
	TaskStarted
	TaskSucceeded
	TaskFailed
	TaskRejected
	TaskRevoked
	TaskRetried
	TaskCustom
	WorkerOnline
	WorkerHeartbeat
	WorkerOffline
	WorkerOther
	Other
)

// Task reports whether the kind belongs to the task group.
func (k Kind) Task() bool { return k >= TaskSent && k <= TaskCustom }

// Worker reports whether the kind belongs to the worker group.
func (k Kind) Worker() bool { return k >= WorkerOnline && k <= WorkerOther }

// Fields is a set of event fields.
type Fields uint32

// The optional fields of an event, one bit each.
const (
	FieldName Fields = 1 << iota
	FieldArgs
	FieldKwargs
	FieldRootID
	FieldParentID
	FieldRetries
	FieldETA
	FieldExpires
	FieldQueue
	FieldExchange
	FieldRoutingKey
	FieldResult
	FieldRuntime
	FieldException
	FieldTraceback
	FieldFreq
	FieldActive
	FieldProcessed
	FieldLoad
	FieldSoftware
	FieldVersion
	FieldSystem
	FieldClock
	FieldPID
	FieldTimestamp
	FieldExpired
	FieldTerminated
	FieldSignum
	FieldClockOffset
)

// Event is one Celery event, decoded. Strings may share memory with the message body they came
// from: the Cluster copies what it keeps.
type Event struct {
	Kind    Kind
	Subject string // the part of type after the first dash; names a custom state
	Present Fields // keys that the event had
	Null    Fields // the present keys whose value was null

	Hostname       string // node name of the sender
	PID            int64  // process id of the sender, 0 if unknown
	Clock          int64  // the sender's Lamport clock, 1 to 2^62, 0 if it sent no usable one
	Micros         int64  // timestamp, µs since 1970 UTC
	ReceivedMicros int64  // local receipt time, µs since 1970 UTC
	Retimed        bool   // Micros is the receipt time, since the sender's timestamp was unusable

	// Apply finds out itself whether the sender's clock was off, and how far it was ahead, µs. Files written before that was
	// known have no FieldClockOffset.
	Skewed       bool
	OffsetMicros int64

	// Task events.
	ID                          string
	Name                        string
	Args, Kwargs                string // Python reprs: shown, never parsed
	RootID, ParentID            string
	Retries                     int64
	ETA, Expires                string // ISO 8601 as sent
	Queue, Exchange, RoutingKey string
	Result                      string
	Runtime                     float64 // seconds
	Exception, Traceback        string
	Expired, Terminated         bool  // why it was revoked
	Signum                      int64 // that it was terminated with, 0 if unknown

	// Worker events.
	Freq                      float64 // seconds between heartbeats
	FreqIsInt                 bool    // the wire had an integer: a forced heartbeat of 5
	Active                    int64
	Processed                 int64
	Load                      [3]float64
	Software, Version, System string
	Extra                     map[string]string // unknown keys → raw JSON; may be nil
}

// Has reports whether the event carried all of f with a value other than null.
func (e *Event) Has(f Fields) bool { return e.Present&f == f && e.Null&f == 0 }

// process is the process that sent the event. A client has one per hostname: its node name already contains its
// pid.
func (e *Event) process() clock.Process {
	if e.Kind == TaskSent {
		return clock.Process{Hostname: e.Hostname}
	}
	return clock.Process{Hostname: e.Hostname, PID: e.PID}
}
