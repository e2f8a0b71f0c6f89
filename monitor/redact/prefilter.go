package redact

import "strings"

// prefilter tells quickly that a text contains none of some fragments, ignoring case. It looks at two bytes of it at a time
// and skips as many as no fragment can begin in (Wu and Manber, 1994).
type prefilter struct {
	shift     [tableSize]uint8 // by two bytes: how far the end of a fragment's first three bytes is at least
	begins    [tableSize]uint8 // by two bytes: bits of those that a fragment has before them
	fragments [tableSize][]string
}

const (
	tableSize   = 4096
	minFragment = 3 // bytes: shorter ones would be found everywhere
)

func pairHash(a, b byte) uint { return (uint(a|0x20)<<5 ^ uint(b|0x20)) % tableSize }

// newPrefilter returns one for fragments of minFragment bytes or more.
func newPrefilter(fragments []string) *prefilter {
	p := new(prefilter)
	for i := range p.shift {
		p.shift[i] = 2
	}
	for _, f := range fragments {
		f = strings.ToLower(f)
		first, second := pairHash(f[0], f[1]), pairHash(f[1], f[2])
		p.shift[first] = min(p.shift[first], 1)
		p.shift[second] = 0
		p.begins[second] |= 1 << (f[0] % 8)
		p.fragments[second] = append(p.fragments[second], f)
	}
	return p
}

// found reports whether s contains a fragment.
func (p *prefilter) found(s string) bool {
	for i := 2; i < len(s); {
		h := pairHash(s[i-1], s[i])
		if skip := p.shift[h]; skip > 0 {
			i += int(skip)
			continue
		}
		if p.begins[h]&(1<<(s[i-2]%8)) != 0 && p.at(s[i-2:], h) {
			return true
		}
		i++
	}
	return false
}

// at reports whether s begins with a fragment of a hash.
func (p *prefilter) at(s string, h uint) bool {
	for _, f := range p.fragments[h] {
		if len(s) >= len(f) && s[0]|0x20 == f[0]|0x20 && strings.EqualFold(s[:len(f)], f) {
			return true
		}
	}
	return false
}
