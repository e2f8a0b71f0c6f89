package idempotency

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxPaths is how many paths Options may have.
const MaxPaths = 100

// step is a node of the tree that paths make: what comes next after a key or an index.
type step struct {
	keys    map[string]*step
	indexes map[int]*step
	any     *step // after [*]
	end     bool  // of a path
}

// parsePaths returns the root of the tree, nil without paths.
func parsePaths(paths []string) (*step, error) {
	if len(paths) == 0 {
		return nil, nil //nolint:nilnil // no tree
	}
	root := new(step)
	for _, path := range paths {
		if err := root.add(path); err != nil {
			return nil, fmt.Errorf("path %q: %w", path, err)
		}
	}
	return root, nil
}

// add adds a path to the tree.
func (s *step) add(path string) error {
	if len(path) > 1024 {
		return &Error{Message: "is longer than 1,024 bytes"}
	}
	rest := path
	for first := true; first || rest != ""; first = false {
		var err error
		if s, rest, err = s.next(rest, first); err != nil {
			return err
		}
	}
	s.end = true
	return nil
}

// next returns the node after the first key or index of path, and what follows that.
func (s *step) next(path string, first bool) (*step, string, error) {
	inner, bracket := strings.CutPrefix(path, "[")
	switch {
	case bracket && strings.HasPrefix(inner, "*]"):
		if s.any == nil {
			s.any = new(step)
		}
		return s.any, inner[2:], nil
	case bracket && strings.HasPrefix(inner, `"`):
		p := newParser(inner)
		key, err := p.text()
		if err != nil || !p.take("]") {
			return nil, "", &Error{Message: `a key between [ and ] must be a string of JSON, as in ["x.y"]`}
		}
		return s.key(key), p.s[p.at:], nil
	case bracket:
		digits, rest, closed := strings.Cut(inner, "]")
		n, err := strconv.Atoi(digits)
		if !closed || err != nil || n < 0 || strconv.Itoa(n) != digits {
			return nil, "", &Error{Message: `an index must be a number or *, as in [0] or [*]`}
		}
		if s.indexes[n] == nil {
			if s.indexes == nil {
				s.indexes = make(map[int]*step)
			}
			s.indexes[n] = new(step)
		}
		return s.indexes[n], rest, nil
	}
	if !first {
		var dot bool
		if path, dot = strings.CutPrefix(path, "."); !dot {
			return nil, "", &Error{Message: "a dot must stand between keys"}
		}
	}
	n := 0
	for n < len(path) && bare(path[n]) {
		n++
	}
	if n == 0 {
		return nil, "", &Error{Message: `a key must be letters, digits, _ and -, or be written as in ["x.y"]`}
	}
	return s.key(path[:n]), path[n:], nil
}

func (s *step) key(key string) *step {
	if s.keys[key] == nil {
		if s.keys == nil {
			s.keys = make(map[string]*step)
		}
		s.keys[key] = new(step)
	}
	return s.keys[key]
}

// bare reports whether c needs no quotes in a key of a path. Letters of any alphabet do not.
func bare(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c >= 0x80
}

// spell writes a key as part of a path, cut to 64 bytes.
func spell(key string) string {
	const most = 64
	quoted := key == "" || len(key) > most
	for i := 0; i < len(key) && !quoted; i++ {
		quoted = !bare(key[i])
	}
	if !quoted {
		return key
	}
	more := ""
	if len(key) > most {
		key, more = key[:most], "…"
	}
	return "[" + Value{kind: isText, text: strings.ToValidUTF8(key, "")}.String() + more + "]"
}

// after returns where the paths at nodes lead from a container to its part i, and whether one of them ends there.
func after(nodes []*step, v *Value, i int) (next []*step, end bool) {
	for _, s := range nodes {
		if v.kind == isObject {
			next = appendStep(next, s.keys[v.keys[i]])
			continue
		}
		next = appendStep(appendStep(next, s.indexes[i]), s.any)
	}
	for _, s := range next {
		end = end || s.end
	}
	return next, end
}

func appendStep(next []*step, s *step) []*step {
	if s == nil {
		return next
	}
	return append(next, s)
}

// keep returns of v what the paths at nodes lead to, or lead through if it is a container, and whether that is anything.
// The root is kept.
func keep(v Value, nodes []*step) (Value, bool) {
	if v.kind != isObject && v.kind != isArray {
		return Value{}, false
	}
	out := Value{kind: v.kind, parts: new(parts)}
	for i, item := range elements(&v) {
		next, end := after(nodes, &v, i)
		ok := end
		if !end && len(next) > 0 {
			item, ok = keep(item, next)
		}
		if ok {
			out.parts.add(&v, i, item)
		}
	}
	return out, true
}

// drop returns v without what the paths at nodes lead to.
func drop(v Value, nodes []*step) Value {
	if v.kind != isObject && v.kind != isArray {
		return v
	}
	out := Value{kind: v.kind, parts: new(parts)}
	for i, item := range elements(&v) {
		next, end := after(nodes, &v, i)
		switch {
		case end:
			continue
		case len(next) > 0:
			item = drop(item, next)
		}
		out.parts.add(&v, i, item)
	}
	return out
}

// add adds part i of a container, changed to item.
func (p *parts) add(from *Value, i int, item Value) {
	if from.kind == isObject {
		p.keys = append(p.keys, from.keys[i])
	}
	p.items = append(p.items, item)
}

// round returns v with its floats rounded.
func round(v Value, decimals int) Value {
	if v.kind == isFloat {
		v.number = roundFloat(v.number, decimals)
		return v
	}
	if v.parts == nil {
		return v
	}
	items := make([]Value, len(v.items))
	for i, item := range v.items {
		items[i] = round(item, decimals)
	}
	v.parts = &parts{v.keys, items}
	return v
}
