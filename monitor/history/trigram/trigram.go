// Package trigram holds which documents of a block contain which trigrams: runs of three characters. It finds the documents that
// may contain a text, which the caller compares then. It knows nothing of where segments are stored.
package trigram

import (
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Gram is a trigram. ASCII ones have numbers of their own; others may share one, and so find more documents.
type Gram uint32

// Length is how many characters a trigram has.
const Length = 3

// Append appends the trigrams of a text, with repetitions.
func Append(grams []Gram, text string) []Gram {
	var a, b rune = -1, -1
	for _, c := range text {
		if a >= 0 {
			grams = append(grams, of(a, b, c))
		}
		a, b = b, c
	}
	return grams
}

func of(a, b, c rune) Gram {
	if a|b|c < utf8.RuneSelf {
		return Gram(a<<14 | b<<7 | c)
	}
	h := (uint64(a)<<42 | uint64(b)<<21 | uint64(c)) * 0x9e3779b97f4a7c15 // Fibonacci hashing
	return Gram(1<<31 | h>>33)
}

// Documents is how many documents a block has at most. Their numbers are those within the block.
const Documents = 1 << 16

// Set is a set of documents of a block.
type Set [Documents / 64]uint64

// Add adds a document.
func (s *Set) Add(doc uint16) { s[doc/64] |= 1 << (doc % 64) }

// Has reports whether a document is in the set.
func (s *Set) Has(doc uint16) bool { return s[doc/64]>>(doc%64)&1 != 0 }

// And keeps the documents that are in o too, and reports whether any are left.
func (s *Set) And(o *Set) bool {
	left := uint64(0)
	for i := range s {
		s[i] &= o[i]
		left |= s[i]
	}
	return left != 0
}

// Or adds the documents of o.
func (s *Set) Or(o *Set) {
	for i := range s {
		s[i] |= o[i]
	}
}

// Len returns how many documents are in the set.
func (s *Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Documents returns the numbers of the documents, in order.
func (s *Set) Documents() (docs []uint16) {
	for i, word := range s {
		for bit := uint16(0); word != 0; bit, word = bit+1, word>>1 {
			if word&1 != 0 {
				docs = append(docs, uint16(i)*64+bit)
			}
		}
	}
	return docs
}

// Builder collects documents for a segment. Its zero value is empty.
type Builder struct {
	pairs []pair
	docs  []uint16
	grams []Gram
}

// pair says that a document contains a trigram.
type pair struct {
	gram Gram
	doc  uint16
}

// Add adds a document with its text. Each is added once, in the order of their numbers.
func (b *Builder) Add(doc uint16, text string) {
	b.docs = append(b.docs, doc)
	b.grams = Append(b.grams[:0], text)
	for _, g := range b.grams {
		b.pairs = append(b.pairs, pair{g, doc})
	}
}

// Segment returns a segment of what was added, and empties the builder.
func (b *Builder) Segment() Segment {
	w := newWriter(b.docs)
	b.sort()
	var docs []uint16
	for i := 0; i < len(b.pairs); {
		gram := b.pairs[i].gram
		docs = docs[:0]
		for ; i < len(b.pairs) && b.pairs[i].gram == gram; i++ {
			if n := len(docs); n == 0 || docs[n-1] != b.pairs[i].doc {
				docs = append(docs, b.pairs[i].doc)
			}
		}
		w.add(gram, docs)
	}
	b.pairs, b.docs = b.pairs[:0], b.docs[:0]
	return w.segment()
}

// sort sorts the pairs, which are in the order of documents, by trigram: three rounds of a radix sort, which takes a tenth of the
// time of a general one.
func (b *Builder) sort() {
	const bits = 11
	other := make([]pair, len(b.pairs))
	for shift := 0; shift < 32; shift += bits {
		var next [1 << bits]int
		for _, p := range b.pairs {
			next[p.gram>>shift&(1<<bits-1)]++
		}
		sum := 0
		for i, n := range next {
			next[i], sum = sum, sum+n
		}
		for _, p := range b.pairs {
			k := p.gram >> shift & (1<<bits - 1)
			other[next[k]] = p
			next[k]++
		}
		b.pairs, other = other, b.pairs
	}
}

// Merge returns a segment of what several hold, without the documents that are not in keep; nil keeps all.
func Merge(segments []*Reader, keep *Set) (Segment, error) {
	var all Set
	cursors := make([]*cursor, 0, len(segments))
	for _, r := range segments {
		all.Or(r.Documents())
		c := &cursor{r: r, docs: r.Documents().Documents(), page: -1}
		if err := c.next(); err != nil {
			return Segment{}, err
		}
		cursors = append(cursors, c)
	}
	if keep != nil {
		all.And(keep)
	}
	w := newWriter(all.Documents())
	var docs []uint16
	for {
		gram, found := Gram(0), false
		for _, c := range cursors {
			if !c.ended && (!found || c.gram < gram) {
				gram, found = c.gram, true
			}
		}
		if !found {
			return w.segment(), nil
		}
		docs = docs[:0]
		lists := 0
		for _, c := range cursors {
			if c.ended || c.gram != gram {
				continue
			}
			lists++
			docs = c.list.append(docs, c.docs)
			if err := c.next(); err != nil {
				return Segment{}, err
			}
		}
		if lists > 1 {
			slices.Sort(docs)
			docs = slices.Compact(docs)
		}
		if keep != nil {
			docs = slices.DeleteFunc(docs, func(doc uint16) bool { return !keep.Has(doc) })
		}
		if len(docs) > 0 {
			w.add(gram, docs)
		}
	}
}
