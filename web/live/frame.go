package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// protocol is the version of the frame format, described in docs/live-protocol.md.
const protocol = 1

// frame is what a client needs to get from one sequence number to the next, or to Seq from Page, or, with Reset, from
// anywhere.
type frame struct {
	V       int    `json:"v"`
	Topic   string `json:"topic"`
	Epoch   string `json:"epoch"`
	Seq     uint64 `json:"seq"`
	Version uint64 `json:"version"`
	Reset   bool   `json:"reset,omitempty"`
	Page    string `json:"page,omitempty"`
	Ops     []op   `json:"ops"`
}

// op changes one region or list.
type op struct {
	Op    string            `json:"op"` // replace or list
	ID    string            `json:"id"`
	HTML  string            `json:"html,omitempty"`
	Order []string          `json:"order,omitzero"` // ids of all rows; nil if the order is as before
	Rows  map[string]string `json:"rows,omitempty"` // HTML of new and changed rows by id
}

// refusal tells a client why a topic has ended.
type refusal struct {
	V     int    `json:"v"`
	Topic string `json:"topic"`
	Error string `json:"error"`
}

// delay tells a client that a topic shows what was, since it cannot be rendered now, or no longer so.
type delay struct {
	V     int    `json:"v"`
	Topic string `json:"topic"`
	Late  bool   `json:"late"`
}

// beat proves to a client that the server is there and tells it the server's time.
type beat struct {
	V   int   `json:"v"`
	Now int64 `json:"now"` // ms since 1970 UTC
}

// request is what a client sends.
type request struct {
	Op    string `json:"op"` // sub or unsub
	Topic string `json:"topic"`
	Epoch string `json:"epoch"` // of the last frame that the client has, empty for none
	Seq   uint64 `json:"seq"`   // of the last frame that the client has
	Page  string `json:"page"`  // name of the page that the client has and no frame yet
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

// all returns the ops that hold everything of s.
func all(s Snapshot) []op {
	ops, _ := diff(Snapshot{}, s)
	return ops
}

// diff returns the ops that turn old into s. It reports false if the two are not made of the same
// regions and lists; the ops then hold everything of s.
func diff(old, s Snapshot) (ops []op, same bool) {
	same = slices.EqualFunc(old.Regions, s.Regions, func(a, b Fragment) bool { return a.ID == b.ID }) &&
		slices.EqualFunc(old.Lists, s.Lists, func(a, b List) bool { return a.ID == b.ID })
	for i, r := range s.Regions {
		if !same || old.Regions[i].HTML != r.HTML {
			ops = append(ops, op{Op: "replace", ID: r.ID, HTML: r.HTML})
		}
	}
	for i, l := range s.Lists {
		if !same {
			ops = append(ops, op{Op: "list", ID: l.ID, Order: order(l.Rows), Rows: changed(nil, l.Rows)})
			continue
		}
		o := op{Op: "list", ID: l.ID, Rows: changed(old.Lists[i].Rows, l.Rows)}
		if !slices.EqualFunc(old.Lists[i].Rows, l.Rows, func(a, b Fragment) bool { return a.ID == b.ID }) {
			o.Order = order(l.Rows)
		}
		if o.Order != nil || len(o.Rows) > 0 {
			ops = append(ops, o)
		}
	}
	return ops, same
}

// order returns the ids of rows, never nil.
func order(rows []Fragment) []string {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

// changed returns the HTML of the rows that are not in old or differ there.
func changed(old, rows []Fragment) map[string]string {
	known := make(map[string]string, len(old))
	for _, r := range old {
		known[r.ID] = r.HTML
	}
	m := map[string]string{}
	for _, r := range rows {
		if html, ok := known[r.ID]; !ok || html != r.HTML {
			m[r.ID] = r.HTML
		}
	}
	return m
}
