package redact

import "strings"

// prefilter tells quickly that a text contains none of some fragments, ignoring case. It looks at two bytes of it at a time
// and skips as many as no fragment can end in (Wu and Manber, 1994).
type prefilter struct {
	least     int // length of the shortest fragment
	shift     [tableSize]uint8
	fragments [tableSize][]string // by their first least bytes' last two, lower case
}

const (
	tableSize   = 2048
	minFragment = 3 // bytes: shorter ones would be found everywhere
)

func pairHash(a, b byte) uint { return (uint(a|0x20)<<5 ^ uint(b|0x20)) % tableSize }

// newPrefilter returns one for fragments of minFragment bytes or more.
func newPrefilter(fragments []string) *prefilter {
	p := &prefilter{least: 255}
	for _, f := range fragments {
		p.least = min(p.least, len(f))
	}
	for i := range p.shift {
		p.shift[i] = uint8(p.least - 1)
	}
	for _, f := range fragments {
		f = strings.ToLower(f)
		for end := 1; end < p.least; end++ {
			h := pairHash(f[end-1], f[end])
			p.shift[h] = min(p.shift[h], uint8(p.least-1-end))
			if end == p.least-1 {
				p.fragments[h] = append(p.fragments[h], f)
			}
		}
	}
	return p
}

// found reports whether s contains a fragment.
func (p *prefilter) found(s string) bool {
	last := p.least - 1
	for i := last; i < len(s); {
		h := pairHash(s[i-1], s[i])
		skip := int(p.shift[h])
		if skip > 0 {
			i += skip
			continue
		}
		for _, f := range p.fragments[h] {
			if start := i - last; len(s)-start >= len(f) && strings.EqualFold(s[start:start+len(f)], f) {
				return true
			}
		}
		i++
	}
	return false
}
