package live

import "time"

// The most that a topic keeps for clients that come back. With many topics they share fewer bytes.
const (
	ringFrames = 2048
	ringBytes  = 4 << 20
	ringAge    = 60 * time.Second
)

// ring holds the newest frames of a topic, whose sequence numbers follow each other. The zero ring
// is empty.
type ring struct {
	entries []entry
	first   uint64 // sequence number of entries[0]
	bytes   int
}

type entry struct {
	frame []byte
	at    time.Time
}

// push appends frame as number seq, one above the last, and drops what is too old or more than
// maxBytes in all.
func (r *ring) push(seq uint64, frame []byte, now time.Time, maxBytes int) {
	if len(r.entries) == 0 {
		r.first = seq
	}
	r.entries = append(r.entries, entry{frame, now})
	r.bytes += len(frame)
	for len(r.entries) > 0 &&
		(len(r.entries) > ringFrames || r.bytes > maxBytes || now.Sub(r.entries[0].at) > ringAge) {
		r.bytes -= len(r.entries[0].frame)
		r.entries[0] = entry{}
		r.entries = r.entries[1:]
		r.first++
	}
}

// at returns frame number seq, false if it is not held.
func (r *ring) at(seq uint64) ([]byte, bool) {
	if seq < r.first || seq-r.first >= uint64(len(r.entries)) {
		return nil, false
	}
	return r.entries[seq-r.first].frame, true
}
