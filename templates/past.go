package templates

import (
	"strconv"
	"strings"
	"time"
)

// Past is an instant that a page shows, and what leads to others.
type Past struct {
	At            time.Time
	Empty         bool      // nothing had been received by then
	WorkersAt     time.Time // of which workers are shown, zero if they are not known
	Doubts        []string  // why not all that was known then may be shown, in clauses
	Here, Now     string    // addresses of the page then and now
	Before, After string    // addresses of the page one event earlier and later, empty if there is none
	Jumps         []Link
	Path          string // of the page without parameters
	Params        []Param
	From, To      time.Time // what the scrubber reaches
	OfTrace       bool      // now is the end of a trace
}

func (p *Past) now() string {
	if p.OfTrace {
		return "End"
	}
	return "Now"
}

func (p *Past) approximate() string { return strings.Join(p.Doubts, "; ") }

func unixSeconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
