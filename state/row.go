package state

import (
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/clock"
)

// row is one task: what filters, counts and the list need of it, without pointers. Everything else is
// read from its records.
type row struct {
	id     taskKey
	clock  int64 // stamp of the newest of its events
	micros int64
	origin uint32 // process of that event

	head, tail uint32 // chain of records
	relation   uint32 // root and parent, 0 if it has neither beyond itself
	count      uint16 // records
	packed     bool   // the records are packed: head is the place of the pack, tail its length
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
	dismissed            // a person dismissed it
	delayed              // some event named an ETA

	concluded = lost | dismissed // cluster.concluded has the row's conclusion

	folded = redelivered | ended | renamed // what events decide
)

// recentRows is how many rows are found without a look into the index, which is large: the events of a task come soon after each
// other.
const recentRows = 1 << 10

// recentAt is the place of a key among the recent rows: the end of a UUID is random, whatever its version.
func recentAt(k taskKey) int { return (int(k[14])<<8 | int(k[15])) % recentRows }

// find returns the number of the row with a key, 0 if there is none.
func (c *Cluster) find(k taskKey) uint32 {
	if i := c.recent[recentAt(k)]; i != 0 && c.rows.at(i).id == k {
		return i
	}
	return c.index.find(k)
}

// rowFor returns the row of a task, a new one if it is not known.
func (c *Cluster) rowFor(id string) (i uint32, r *row, known bool) {
	k, digested := key(id)
	i = c.find(k)
	known = i != 0
	if !known {
		i = c.rows.alloc()
		r = c.rows.at(i)
		r.id = k
		if digested {
			r.flags |= hashedID
			c.hashedIDs[k] = strings.Clone(id)
		}
		c.index.add(k, i)
	}
	c.recent[recentAt(k)] = i
	return i, c.rows.at(i), known
}

func (c *Cluster) row(id string) *row {
	k, _ := key(id)
	i := c.find(k)
	if i == 0 {
		return nil
	}
	return c.rows.at(i)
}

// id returns a row's task id as it was sent.
func (c *Cluster) id(r *row) string {
	if r.flags&hashedID != 0 {
		return c.hashedIDs[r.id]
	}
	return r.id.uuid()
}

func (c *Cluster) stamp(r *row) clock.Stamp {
	return clock.Stamp{Clock: r.clock, Micros: r.micros, Origin: origin(c.processes.key(r.origin))}
}

// origin names a process as Celery does: hostname.pid, or a client's hostname alone.
func origin(l clock.Process) string {
	if l.PID == 0 {
		return l.Hostname
	}
	return l.Hostname + "." + strconv.FormatInt(l.PID, 10)
}

// after reports whether the record's stamp is above the row's.
func (c *Cluster) after(rec *record, r *row) bool {
	if rec.repaired != r.clock {
		return rec.repaired > r.clock
	}
	return c.stampOf(rec).Compare(c.stamp(r)) > 0
}

// raiseStamp gives the row the stamp of its newest record, if that is later than its own.
func (c *Cluster) raiseStamp(r *row) {
	if newest := c.records.at(r.tail); r.origin == 0 || c.after(newest, r) {
		c.processes.retain(newest.process)
		c.processes.release(r.origin)
		r.clock, r.micros, r.origin = newest.repaired, newest.micros, newest.process
	}
}

func (c *Cluster) position(r *row) Position { return Position{Stamp: c.stamp(r), ID: c.id(r)} }

// rowBefore breaks ties of the clock in the order of the list.
func (c *Cluster) rowBefore(a, b uint32) bool {
	return c.position(c.rows.at(a)).Compare(c.position(c.rows.at(b))) < 0
}

// itemOf is the row's place in the list, with what filters need.
func (c *Cluster) itemOf(i uint32, r *row) listItem {
	return listItem{clock: r.clock, row: i, name: r.name, worker: r.worker, state: r.state, flags: r.flags}
}
