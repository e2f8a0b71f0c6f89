package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// protocol is the version of the messages, described in docs/live-protocol.md.
const protocol = 2

// frame is what a client needs to get from one sequence number to the next. The first frame of a socket leads to Seq of
// Epoch, from Page or, with Reset, from anywhere.
type frame struct {
	Epoch string `json:"epoch,omitempty"`
	Seq   uint64 `json:"seq,omitempty"`
	Page  string `json:"page,omitempty"`
	Reset bool   `json:"reset,omitempty"`
	Ops   []op   `json:"ops"`
}

// op changes a region, if it has HTML, or a list.
type op struct {
	ID    string         `json:"id"`
	HTML  string         `json:"html,omitempty"`
	Order []any          `json:"order,omitzero"` // ids of new rows and spans of the order before; nil if it is as before
	Rows  map[string]any `json:"rows,omitempty"` // new and changed rows by id: their HTML, or that of changed cells by index
}

// span is a part of the order of a list: the index of its first row and the number of rows.
type span [2]int

// refusal tells a client why a topic has ended.
type refusal struct {
	Error string `json:"error"`
}

// delay tells a client that a topic shows what was, since it cannot be rendered now, or no longer so.
type delay struct {
	Late bool `json:"late"`
}

// beat proves to a client that the server is there and tells it the server's time.
type beat struct {
	V   int   `json:"v"`
	Now int64 `json:"now"` // ms since 1970 UTC
}

// request is what a client asks for by the URL of its socket.
type request struct {
	topic string
	epoch string // of the last frame that the client has, empty for none
	seq   uint64 // of the last frame that the client has
	page  string // name of the page that the client has and no frame yet
}

func newRequest(q url.Values) request {
	seq, _ := strconv.ParseUint(q.Get("seq"), 10, 64) // 0 is none
	return request{topic: q.Get("topic"), epoch: q.Get("epoch"), seq: seq, page: q.Get("page")}
}

// encode returns v as JSON. HTML is left readable: the client parses JSON, nothing embeds it.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode frame: %w", err)
	}
	return bytes.Clone(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// diff returns the ops that turn old into s. It reports false if the two are not made of the same
// regions and lists; the ops then hold everything of s.
func diff(old, s Snapshot) (ops []op, same bool) {
	same = slices.EqualFunc(old.Regions, s.Regions, func(a, b Fragment) bool { return a.ID == b.ID }) &&
		slices.EqualFunc(old.Lists, s.Lists, func(a, b List) bool { return a.ID == b.ID })
	for i, r := range s.Regions {
		if !same || old.Regions[i].HTML != r.HTML {
			ops = append(ops, op{ID: r.ID, HTML: r.HTML})
		}
	}
	for i, l := range s.Lists {
		var before []Fragment
		if same {
			before = old.Lists[i].Rows
		}
		o := op{ID: l.ID, Rows: changed(before, l.Rows)}
		if !same || !slices.EqualFunc(before, l.Rows, func(a, b Fragment) bool { return a.ID == b.ID }) {
			o.Order = order(before, l.Rows)
		}
		if o.Order != nil || len(o.Rows) > 0 {
			ops = append(ops, o)
		}
	}
	return ops, same
}

// order returns the order of rows, never nil: ids of those that are not in old, and spans of old.
func order(old, rows []Fragment) []any {
	at := make(map[string]int, len(old))
	for i, r := range old {
		at[r.ID] = i
	}
	parts := []any{}
	for _, r := range rows {
		i, ok := at[r.ID]
		if !ok {
			parts = append(parts, r.ID)
			continue
		}
		if n := len(parts); n > 0 {
			if last, ok := parts[n-1].(span); ok && last[0]+last[1] == i {
				parts[n-1] = span{last[0], last[1] + 1}
				continue
			}
		}
		parts = append(parts, span{i, 1})
	}
	return parts
}

// changed returns the rows that are not in old or differ there, as an op has them.
func changed(old, rows []Fragment) map[string]any {
	known := make(map[string]string, len(old))
	for _, r := range old {
		known[r.ID] = r.HTML
	}
	m := map[string]any{}
	for _, r := range rows {
		if html, ok := known[r.ID]; !ok {
			m[r.ID] = r.HTML
		} else if html != r.HTML {
			m[r.ID] = cells(html, r.HTML)
		}
	}
	return m
}

// cells returns the cells of a row that are not as in old, by their index, or all of the row if more than cells differs.
func cells(old, row string) any {
	const cell = "<td" // in text it would be escaped
	before, after := strings.Split(old, cell), strings.Split(row, cell)
	if len(before) != len(after) || before[0] != after[0] {
		return row
	}
	m := map[int]string{}
	for i, html := range after {
		if html != before[i] {
			m[i-1] = cell + html
		}
	}
	return m
}
