package state

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/umbelhq/umbel/clock"
)

// record is one stored event of a task: 48 bytes without pointers. The records of a task are
// a chain in order of arrival.
type record struct {
	micros   int64 // sender's wall clock
	clock    int64 // raw, 0 if none
	repaired int64
	text     int64  // position in the text log, 0 if none
	process  uint32 // number of the sender in processes
	next     uint32 // record that arrived next, 0 at the end
	route    uint32 // number of name and route in routes, 0 if the event had neither
	kind     Kind
	flags    recordFlags
	n        uint16 // attempt of a sent or received event; state code of a custom one; Revocation.code
}

type recordFlags uint8

const (
	retimed      recordFlags = 1 << iota // micros is a receipt time
	cut                                  // some text did not fit
	ownParent                            // of a sent or received event: the task is its own parent, or
	otherParent                          // has another one
	emptySuccess                         // a task-succeeded whose result and runtime are null: it did not
	skewed                               // the sender's clock was off by more than MaxOffset
)

// unmeasured are the fields that are null in the task-succeeded that gevent and eventlet workers send of a
// task that was terminated.
const unmeasured = FieldResult | FieldRuntime

// restore sets what the record itself keeps of an event, beside its text.
func (r *record) restore(e *Event) {
	switch {
	case r.flags&ownParent != 0:
		e.ParentID, e.Present = e.ID, e.Present|FieldParentID
	case r.kind == TaskRevoked:
		revocationOf(r.n).restore(e)
	case r.flags&emptySuccess != 0:
		e.Present |= unmeasured
		e.Null |= unmeasured
	}
}

// route is the name of a task and where a task-sent says it went. Other events have only the name.
type route struct {
	name, queue, exchange, routingKey string
}

// row is one task: what filters, counts and the list need of it, without pointers. Everything else is
// read from its records.
type row struct {
	id         taskKey
	clock      int64 // stamp of the newest of its events
	micros     int64
	origin     uint32 // process of that event
	receivedAt uint32 // local receipt of the newest of them, seconds since 1970 UTC, 0 if unknown

	head, tail uint32 // chain of records
	relation   uint32 // root and parent, 0 if it has neither beyond itself
	count      uint16 // records in the chain
	summary
}

// summary is the part of a row that its events decide.
type summary struct {
	name    uint32 // route of the event that names it
	sent    uint32 // route of the task-sent that it came from
	worker  uint32 // number of its node name in hosts
	process uint32 // process of the newest execution
	state   stateCode
	flags   rowFlags
}

type rowFlags uint16

const (
	redelivered rowFlags = 1 << iota
	ended                // the newest execution has ended
	hashedID             // the id is no UUID: the key is a digest of it
	unsaved              // changed since it was taken to be saved
	saving               // taken to be saved, outcome unknown
	stored               // saved, with no event that is not in memory
	renamed              // an execution had another name
	expiring             // some event named a time to expire
	lost                 // concluded that no event will report its end,
	orphaned             // because its process has ended
	dismissed            // a person has said so

	concluded = lost | dismissed // cluster.concluded has the row's conclusion

	folded = redelivered | ended | renamed // what events decide
)

// relation ties a task into its workflow.
type relation struct {
	root, parent taskKey
	row          uint32
	prev, next   uint32 // siblings
}

// taskKey is a task id: the 16 bytes of a UUID, or a digest of any other string.
type taskKey [16]byte

// key returns the key of an id, and whether the id had to be digested.
func key(id string) (k taskKey, digested bool) {
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		var plain [32]byte
		n := copy(plain[:], id[:8])
		n += copy(plain[n:], id[9:13])
		n += copy(plain[n:], id[14:18])
		n += copy(plain[n:], id[19:23])
		copy(plain[n:], id[24:])
		for _, b := range plain {
			if b >= 'A' && b <= 'F' { // a different string than in lower case
				return digest(id), true
			}
		}
		if _, err := hex.Decode(k[:], plain[:]); err == nil {
			return k, false
		}
	}
	return digest(id), true
}

func digest(id string) taskKey {
	sum := sha256.Sum256([]byte(id))
	return taskKey(sum[:16])
}

// uuid writes a key that was not digested.
func (k taskKey) uuid() string {
	var b [36]byte
	hex.Encode(b[:8], k[:4])
	hex.Encode(b[9:13], k[4:6])
	hex.Encode(b[14:18], k[6:8])
	hex.Encode(b[19:23], k[8:10])
	hex.Encode(b[24:], k[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// stampOf returns the stamp of a record.
func (c *Cluster) stampOf(r *record) clock.Stamp {
	return clock.Stamp{Clock: r.repaired, Micros: r.micros, Origin: origin(c.processes.key(r.process))}
}
