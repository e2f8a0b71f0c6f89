package query

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/monitor/history"
)

// Parameters of the list of duplicates.
const (
	paramVerdict = "verdict"
	sortTasks    = "tasks" // most tasks first
)

// Duplicates selects a page of the list of groups of duplicates. The zero value selects all groups, newest task first.
type Duplicates struct {
	Verdict duplicates.Verdict // only groups with it; empty is all
	Name    string             // only tasks of this name; empty is all
	Most    bool               // most tasks first
	Limit   int                // 1 to MaxLimit; 0 means DefaultLimit
	After   *history.DuplicatePosition
}

// ParseDuplicates reads a query from URL parameters as Parse does.
func ParseDuplicates(v url.Values) (Duplicates, error) {
	p := parser{values: v}
	d := Duplicates{Verdict: p.verdict(), Name: p.duplicateName(), Most: p.mostTasks(), Limit: p.limit()}
	d.After = p.duplicateCursor(d.Most)
	return d, p.failed()
}

func (p *parser) verdict() duplicates.Verdict {
	v := duplicates.Verdict(p.one(paramVerdict))
	if v != "" && v.Mark() == 0 {
		var names []string
		for _, known := range duplicates.Verdicts() {
			names = append(names, string(known))
		}
		p.fail(paramVerdict, "must be one of "+strings.Join(names, ", "))
		return ""
	}
	return v
}

func (p *parser) duplicateName() string {
	name := strings.TrimSpace(p.one(paramName))
	if len(name) > maxValue {
		p.fail(paramName, "must be at most "+strconv.Itoa(maxValue)+" bytes long")
		return ""
	}
	return name
}

func (p *parser) mostTasks() bool {
	switch p.one(paramSort) {
	case "":
		return false
	case sortTasks:
		return true
	}
	p.fail(paramSort, "must be "+sortTasks+", or absent for the newest task first")
	return false
}

func (p *parser) duplicateCursor(most bool) *history.DuplicatePosition {
	s := p.one(paramCursor)
	if s == "" {
		return nil
	}
	pos, ok := decodeDuplicate(s, most)
	if !ok {
		p.fail(paramCursor, "must be a cursor from an earlier page")
		return nil
	}
	return &pos
}

// Request returns the query as a store takes it.
func (d Duplicates) Request() history.DuplicateRequest {
	return history.DuplicateRequest{
		Marks: d.Verdict.Mark(), Name: d.Name, Most: d.Most, After: d.After, Limit: cmp.Or(d.Limit, DefaultLimit),
	}
}

// URL returns path with the parameters that select the same page, in one spelling.
func (d Duplicates) URL(path string) string {
	params := map[string]string{paramVerdict: string(d.Verdict), paramName: d.Name, paramLimit: decimal(d.Limit)}
	if d.Most {
		params[paramSort] = sortTasks
	}
	if d.After != nil {
		params[paramCursor] = EncodeDuplicate(*d.After, d.Most)
	}
	return address(path, params)
}

// EncodeDuplicate returns the cursor of the page that continues after pos: 16 hexadecimal digits of its newest task, then
// 8 of its tasks if the list is sorted by them.
func EncodeDuplicate(pos history.DuplicatePosition, most bool) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(pos.Newest))
	if most {
		b = binary.BigEndian.AppendUint32(b, uint32(pos.Tasks))
	}
	return hex.EncodeToString(b)
}

// decodeDuplicate reverses EncodeDuplicate. It accepts nothing that EncodeDuplicate would not have returned.
func decodeDuplicate(s string, most bool) (pos history.DuplicatePosition, ok bool) {
	b, err := hex.DecodeString(s)
	switch {
	case err != nil, most && len(b) != 12, !most && len(b) != 8:
		return pos, false
	case most:
		pos.Tasks = int(binary.BigEndian.Uint32(b[8:]))
	}
	pos.Newest = int64(binary.BigEndian.Uint64(b))
	return pos, pos.Newest > 0 && EncodeDuplicate(pos, most) == s
}
