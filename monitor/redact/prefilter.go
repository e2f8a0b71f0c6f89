package redact

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
)

// fragment is a text that everything to redact by a rule or form contains: the bytes that may stand at each of its positions.
type fragment struct {
	bytes []string
	word  bool // it begins a word
}

const minFragment = 3 // bytes: shorter ones would be found everywhere

// exactFragment returns the fragment that is s, case and all.
func exactFragment(s string) fragment {
	var f fragment
	for i := range len(s) {
		f.bytes = append(f.bytes, s[i:i+1])
	}
	return f
}

// keyFragment returns the fragment that is part of a key, in any case and with any separators. last is whether the key ends with
// it, so that a quote or what separates it from its value follows.
func keyFragment(s string, last bool) fragment {
	var f fragment
	for i := range len(s) {
		if s[i] == '_' {
			f.bytes = append(f.bytes, "_- .")
			continue
		}
		f.bytes = append(f.bytes, strings.ToLower(s[i:i+1])+strings.ToUpper(s[i:i+1]))
	}
	if last {
		f.bytes = append(f.bytes, afterKey)
	}
	return f
}

// afterKey are the bytes that may follow a key in text: keyBefore skips blanks and quotes with backslashes before them.
const afterKey = "'\"\\ \t" + separators

// disguised are the fragments of what becomes an ASCII character when a key is read: escapes, and letters that such have as their
// small ones.
func disguised() []fragment {
	list := []fragment{exactFragment("\u0130"), exactFragment("\u212a"), keyFragment(`\u0130`, false), keyFragment(`\u212a`, false)}
	for _, before := range []string{`\x`, `\u00`, `\U000000`} {
		f := exactFragment(before)
		f.bytes = append(f.bytes, "234567")
		list = append(list, f)
	}
	return list
}

// prefilter tells quickly that a text contains none of some fragments. It reads each byte once, with a shift and an or (Baeza-Yates
// and Gonnet, 1992) for up to 8 groups of fragments at once: a bit is 0 as long as the bytes read could end a fragment of its group.
type prefilter struct {
	table  [256]uint64 // by byte: at 8·position + group, whether it is none of that position
	start  uint64
	groups [width][]member
}

const (
	width = 8 // of groups, and of the end of a fragment that is compared
	ends8 = 0xff << (8 * (width - 1))
)

// newPrefilter returns one for fragments of minFragment bytes or more.
func newPrefilter(fragments []fragment) *prefilter {
	p := new(prefilter)
	groups := p.divide(fragments)
	for c := range p.table {
		p.table[c] = ^uint64(0)
	}
	for g := range groups {
		w := &groups[g]
		for position := range w.bytes {
			bit := uint64(1) << (8*position + g)
			for c := range p.table {
				if w.bytes[position][c/64]&(1<<(c%64)) != 0 {
					p.table[c] &^= bit
				}
			}
			if position >= width-w.length {
				p.start |= bit // nothing was read for it yet
			}
		}
	}
	return p
}

// divide puts each fragment into a group so that little text passes that has none, and returns what the groups let pass.
func (p *prefilter) divide(fragments []fragment) (groups [width]window) {
	slices.SortStableFunc(fragments, func(a, b fragment) int { return cmp.Compare(len(b.bytes), len(a.bytes)) })
	windows, in := make([]window, len(fragments)), make([]int, len(fragments))
	for i := range fragments {
		windows[i] = newWindow(fragments[i])
		in[i] = bestGroup(&groups, &windows[i])
		groups[in[i]] = groups[in[i]].join(&windows[i])
	}
	for range min(3, 500/(len(fragments)+1)) { // again, beside all others
		for i := range fragments {
			var without window
			for k := range windows {
				if k != i && in[k] == in[i] {
					without = without.join(&windows[k])
				}
			}
			groups[in[i]] = without
			in[i] = bestGroup(&groups, &windows[i])
			groups[in[i]] = groups[in[i]].join(&windows[i])
		}
	}
	for i, f := range fragments {
		p.groups[in[i]] = append(p.groups[in[i]], newMember(f))
	}
	return groups
}

// bestGroup returns the group that lets the least text more pass with w.
func bestGroup(groups *[width]window, w *window) int {
	best, least := 0, 0.0
	for g := range groups {
		joined := groups[g].join(w)
		if more := joined.share() - groups[g].share(); g == 0 || more < least {
			best, least = g, more
		}
	}
	return best
}

// window is what the last bytes of a group's fragments may be.
type window struct {
	bytes  [width][4]uint64 // by position: a set of bytes
	length int              // of the shortest, 0 if the group is empty
}

func newWindow(f fragment) window {
	w := window{length: min(len(f.bytes), width)}
	for position := range w.bytes {
		i := len(f.bytes) - width + position
		if i < 0 {
			w.bytes[position] = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
			continue
		}
		for _, c := range []byte(f.bytes[i]) {
			w.bytes[position][c/64] |= 1 << (c % 64)
		}
	}
	return w
}

// join returns the window of two groups in one.
func (w *window) join(o *window) window {
	if w.length == 0 {
		return *o
	}
	sum := *w
	sum.length = min(w.length, o.length)
	for position := range sum.bytes {
		for i := range sum.bytes[position] {
			sum.bytes[position][i] |= o.bytes[position][i]
		}
	}
	return sum
}

// share estimates how much of text a window lets pass.
func (w *window) share() float64 {
	if w.length == 0 {
		return 0
	}
	share := 1.0
	for _, set := range w.bytes {
		sum := 0
		for i, part := range set {
			sum += bits.OnesCount64(part) + 2*bits.OnesCount64(part&usual[i]) + 4*bits.OnesCount64(part&frequent[i])
		}
		share *= min(1, float64(sum)/100)
	}
	return share
}

// What stands in reprs more often than other bytes, as sets of them.
//
//nolint:gochecknoglobals // constant tables
var (
	usual    = setOf("abcdefghijklmnopqrstuvwxyz0123456789,:\"' ")
	frequent = setOf(" 'eatoinrs")
)

func setOf(text string) (set [4]uint64) {
	for i := range len(text) {
		set[text[i]/64] |= 1 << (text[i] % 64)
	}
	return set
}

// found reports whether s contains a fragment.
func (p *prefilter) found(s string) bool {
	state, table := p.start, &p.table
	i := 0 // four at a time, of which few need a second look; the next four wait for no more than a shift and an or
	for ; i+4 <= len(s); i += 4 {
		part := s[i : i+4]
		one, three := table[part[0]], table[part[2]]
		two, four := one<<8|table[part[1]], three<<8|table[part[3]]
		b := state<<16 | two
		d := state<<32 | two<<16 | four
		if (state<<8|one)&b&(b<<8|three)&d < ends8 && p.foundNear(s[:i+4], state) {
			return true
		}
		state = d
	}
	for ; i < len(s); i++ {
		if state = state<<8 | table[s[i]]; state < ends8 && p.at(s[:i+1], state) {
			return true
		}
	}
	return false
}

// foundNear reports whether a fragment ends with one of the last four bytes of s, before which state was that of found.
func (p *prefilter) foundNear(s string, state uint64) bool {
	for i := len(s) - 4; i < len(s); i++ {
		if state = state<<8 | p.table[s[i]]; state < ends8 && p.at(s[:i+1], state) {
			return true
		}
	}
	return false
}

// at reports whether s ends with a fragment of the groups whose bit in state is 0.
func (p *prefilter) at(s string, state uint64) bool {
	last := uint64(0) // bytes
	for i := max(0, len(s)-width); i < len(s); i++ {
		last = last<<8 | uint64(s[i])
	}
	for left := ^uint8(state >> (8 * (width - 1))); left != 0; left &= left - 1 {
		group := p.groups[bits.TrailingZeros8(left)]
		for i := range group {
			if last&group[i].mask == group[i].value && group[i].ends(s) {
				return true
			}
		}
	}
	return false
}

// member is a fragment of a group, with what is the same of the last bytes of all texts that end with it.
type member struct {
	mask, value uint64
	fragment
}

func newMember(f fragment) member {
	m := member{fragment: f}
	for i := max(0, len(f.bytes)-width); i < len(f.bytes); i++ {
		same, all := byte(0xff), f.bytes[i][0]
		for _, c := range []byte(f.bytes[i]) {
			same &^= c ^ all
		}
		m.mask, m.value = m.mask<<8|uint64(same), m.value<<8|uint64(all&same)
	}
	return m
}

// ends reports whether s ends with the fragment.
func (f *fragment) ends(s string) bool {
	start := len(s) - len(f.bytes)
	if start < 0 || f.word && start > 0 && isASCIIWord(s[start-1]) {
		return false
	}
	for i, bytes := range slices.Backward(f.bytes) {
		if strings.IndexByte(bytes, s[start+i]) < 0 {
			return false
		}
	}
	return true
}

// isASCIIWord reports whether c is part of a word for regular expressions.
func isASCIIWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
