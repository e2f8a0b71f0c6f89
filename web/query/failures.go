package query

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"net/url"
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state/fingerprint"
)

const (
	paramShow     = "show"
	paramAssignee = "assignee"
)

// What a list of groups of failures shows.
const (
	ShowOpen     = "open" // those that came back, too
	ShowResolved = "resolved"
	ShowAll      = "all"
)

// Failures selects a page of the list of groups of failures. The zero value selects the open ones that
// failed last.
type Failures struct {
	Show     string                   // empty means ShowOpen
	Span                              // only groups with failures in it; none means all
	Assignee string                   // only groups that are assigned to them; empty means all
	Limit    int                      // 1 to MaxLimit; 0 means DefaultLimit
	After    *history.FailurePosition // the page continues after this group; nil means the first page
}

// ParseFailures reads a query from URL parameters as Parse does.
func ParseFailures(v url.Values) (Failures, error) {
	p := parser{values: v}
	return Failures{Show: p.show(), Span: p.span(), Assignee: p.assignee(), Limit: p.limit(), After: p.failureCursor()}, p.failed()
}

func (p *parser) assignee() string {
	s := p.one(paramAssignee)
	if len(s) > history.MaxAssignee {
		p.fail(paramAssignee, "must have at most "+decimal(history.MaxAssignee)+" bytes")
		return ""
	}
	return s
}

func (p *parser) show() string {
	switch s := p.one(paramShow); s {
	case "", ShowOpen:
		return ""
	case ShowResolved, ShowAll:
		return s
	}
	p.fail(paramShow, "must be "+ShowOpen+", "+ShowResolved+" or "+ShowAll)
	return ""
}

func (p *parser) failureCursor() *history.FailurePosition {
	s := p.one(paramCursor)
	if s == "" {
		return nil
	}
	pos, ok := decodeFailure(s)
	if !ok {
		p.fail(paramCursor, "must be a cursor from an earlier page")
		return nil
	}
	return &pos
}

// Request returns the query as a store takes it.
func (f Failures) Request(now time.Time, stale time.Duration) history.FailureRequest {
	r := history.FailureRequest{Assignee: f.Assignee, After: f.After, Limit: cmp.Or(f.Limit, DefaultLimit), Now: now, MaxAge: stale}
	r.From, r.To = f.Times()
	if f.Show != ShowAll {
		r.Resolved = new(f.Show == ShowResolved)
	}
	return r
}

// URL returns path with the parameters that select the same page, in one spelling.
func (f Failures) URL(path string) string {
	params := map[string]string{paramShow: f.Show, paramAssignee: f.Assignee, paramLimit: decimal(f.Limit), paramSpanSince: f.since(), paramSpanUntil: f.until()}
	if f.After != nil {
		params[paramCursor] = EncodeFailure(*f.After)
	}
	return address(path, params)
}

// EncodeFailure returns the cursor of the page that continues after pos: 16 hexadecimal digits of its time in µs,
// then its id.
func EncodeFailure(pos history.FailurePosition) string {
	micros := binary.BigEndian.AppendUint64(nil, uint64(pos.LastAt.UnixMicro()))
	return hex.EncodeToString(micros) + pos.ID.String()
}

// decodeFailure reverses EncodeFailure. It accepts nothing that EncodeFailure would not have returned.
func decodeFailure(s string) (pos history.FailurePosition, ok bool) {
	if len(s) != 32 {
		return pos, false
	}
	micros, err := hex.DecodeString(s[:16])
	if err != nil {
		return pos, false
	}
	pos.LastAt = time.UnixMicro(int64(binary.BigEndian.Uint64(micros))).UTC()
	pos.ID, ok = fingerprint.ParseID(s[16:])
	return pos, ok && EncodeFailure(pos) == s
}
