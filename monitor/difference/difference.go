// Package difference says how the arguments of two tasks differ: by structure where both can be read, else word by word. It
// draws nothing and reads no tasks.
package difference

import (
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/celery"
)

// Bounds of one comparison.
const (
	MaxRows = 200 // that differ, and as many that are equal
	maxText = 400 // characters of one value
	context = 40  // of them before the first difference
)

// Comparison is how two texts differ. Rows are empty if one of them cannot be read; then First and Second are whole.
type Comparison struct {
	ByStructure   bool
	Rows          []Row // that differ
	Equal         []Row
	More          int // rows that are left out
	First, Second []Part
}

// Row is a value that both have, or one of them. A side that does not have it is nil.
type Row struct {
	Path          string
	First, Second []Part
}

// Part is a piece of a text.
type Part struct {
	Text    string
	Differs bool
}

// Reprs compares two reprs. name is the root of the paths.
func Reprs(name, first, second string) Comparison {
	a, readA := celery.ReadRepr(first)
	b, readB := celery.ReadRepr(second)
	if !readA || !readB || !a.Container() || !b.Container() {
		c := Comparison{}
		c.First, c.Second = Words(first, second)
		return c
	}
	c := Comparison{ByStructure: true}
	c.compare(name, &a, &b)
	return c
}

// Differs reports whether there is any difference.
func (c *Comparison) Differs() bool {
	for _, p := range c.First {
		if p.Differs {
			return true
		}
	}
	for _, p := range c.Second {
		if p.Differs {
			return true
		}
	}
	return len(c.Rows) > 0
}

// compare compares two values. Those that are equal make one row.
func (c *Comparison) compare(path string, a, b *celery.Value) {
	whole := a.String()
	switch {
	case whole == b.String() && a.Kind == b.Kind:
		c.equal(path, whole)
	case a.Kind != b.Kind || !a.Container() || a.Kind == celery.ValueSet:
		c.differ(path, a, b)
	case a.Kind == celery.ValueDict:
		c.dicts(path, a, b)
	default:
		c.lists(path, a, b)
	}
}

// lists compares element by element what is between equal beginnings and equal ends.
func (c *Comparison) lists(path string, a, b *celery.Value) {
	n, m := len(a.Items), len(b.Items)
	end := 0
	for n != m && end < min(n, m) && same(&a.Items[n-1-end], &b.Items[m-1-end]) {
		end++
	}
	at := func(i int) string { return path + "[" + strconv.Itoa(i) + "]" }
	for i := range max(n, m) - end {
		switch {
		case i >= n-end:
			c.differ(at(i), nil, &b.Items[i])
		case i >= m-end:
			c.differ(at(i), &a.Items[i], nil)
		default:
			c.compare(at(i), &a.Items[i], &b.Items[i])
		}
	}
	for i := n - end; i < n; i++ {
		c.equal(at(i), a.Items[i].String())
	}
}

// dicts compares by key, in the order of the first and then of the second.
func (c *Comparison) dicts(path string, a, b *celery.Value) {
	places := make(map[string]int, len(b.Keys))
	for i := range b.Keys {
		places[b.Keys[i].String()] = i
	}
	for i := range a.Items {
		key := a.Keys[i].String()
		if j, ok := places[key]; ok {
			delete(places, key)
			c.compare(below(path, &a.Keys[i]), &a.Items[i], &b.Items[j])
		} else {
			c.differ(below(path, &a.Keys[i]), &a.Items[i], nil)
		}
	}
	for i := range b.Items {
		if j, ok := places[b.Keys[i].String()]; ok && i == j {
			c.differ(below(path, &b.Keys[i]), nil, &b.Items[i])
		}
	}
}

// below is the path of a key.
func below(path string, key *celery.Value) string {
	if key.Kind == celery.ValueText && isName(key.Text) {
		return path + "." + key.Text
	}
	return path + "[" + key.String() + "]"
}

func isName(s string) bool {
	return s != "" && len(s) <= 100 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-") == ""
}

func same(a, b *celery.Value) bool { return a.Kind == b.Kind && a.String() == b.String() }

func (c *Comparison) equal(path, text string) {
	if len(c.Equal) >= MaxRows {
		c.More++
		return
	}
	part := []Part{{Text: shorten(text)}}
	c.Equal = append(c.Equal, Row{path, part, part})
}

// differ adds a row. One of the values may be nil.
func (c *Comparison) differ(path string, a, b *celery.Value) {
	if len(c.Rows) >= MaxRows {
		c.More++
		return
	}
	r := Row{Path: path}
	switch {
	case a == nil:
		r.Second = []Part{{shorten(b.String()), true}}
	case b == nil:
		r.First = []Part{{shorten(a.String()), true}}
	case a.Kind == celery.ValueText && b.Kind == celery.ValueText:
		r.First, r.Second = Words(a.String(), b.String())
	default:
		r.First, r.Second = []Part{{shorten(a.String()), true}}, []Part{{shorten(b.String()), true}}
	}
	c.Rows = append(c.Rows, r)
}

// shorten cuts a text to what is shown of it.
func shorten(s string) string {
	n := 0
	for i := range s {
		if n++; n > maxText {
			return s[:i] + "…"
		}
	}
	return s
}
