package state

// Revocation is why a task was revoked.
type Revocation struct {
	Expired    bool  // its time to start had passed
	Terminated bool  // it was running
	Signum     int64 // of the signal that it was terminated with, 0 if unknown
}

// Reason is expired, terminated or revoked.
func (r Revocation) Reason() string {
	switch {
	case r.Expired:
		return "expired"
	case r.Terminated:
		return "terminated"
	default:
		return "revoked"
	}
}

func (e *Event) revocation() Revocation { return Revocation{e.Expired, e.Terminated, e.Signum} }

// maxSignum is the greatest number of a signal on Linux.
const maxSignum = 64

// code is the revocation as a number: a bit each for expired and terminated, then the signal.
func (r Revocation) code() (n uint16) {
	if r.Expired {
		n |= 1
	}
	if r.Terminated {
		n |= 2
	}
	if r.Signum > 0 && r.Signum <= maxSignum {
		n |= uint16(r.Signum) << 2
	}
	return n
}

func revocationOf(code uint16) Revocation {
	return Revocation{Expired: code&1 != 0, Terminated: code&2 != 0, Signum: int64(code >> 2)}
}

// restore sets the fields of an event from which r was made.
func (r Revocation) restore(e *Event) {
	e.Expired, e.Terminated, e.Signum = r.Expired, r.Terminated, r.Signum
	if r != (Revocation{}) {
		e.Present |= FieldExpired | FieldTerminated | FieldSignum
	}
}
