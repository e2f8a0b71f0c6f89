package trigram

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// pageSize is how many bytes of a page begin another.
const pageSize = 16 << 10

// Segment is an encoded, immutable set of documents with their trigrams. Head says which documents it has and where each page
// begins; pages have the trigrams in order, each with its documents.
type Segment struct {
	Documents int // how many
	Head      []byte
	Pages     [][]byte
}

// ErrDamaged is returned for a segment that cannot be decoded.
var ErrDamaged = errors.New("damaged index of trigrams")

// list is an encoded list of documents.
type list struct {
	form byte
	body []byte
}

// Forms of a list.
const (
	differences = iota // between a document and the one before, less 1, as uvarints
	others             // the same, of those documents of the segment that are not in the list
	bitmap             // a Set, little-endian
	forms       = 4    // that the encoding has room for
)

// segmentWriter encodes a segment.
type segmentWriter struct {
	docs   []uint16 // of the segment
	all    *Set     // the same
	starts []Gram
	pages  [][]byte
	last   Gram // of the page
	rest   []uint16
}

func newWriter(docs []uint16) *segmentWriter {
	w := &segmentWriter{docs: slices.Clone(docs), all: new(Set)}
	slices.Sort(w.docs)
	for _, doc := range w.docs {
		w.all.Add(doc)
	}
	return w
}

// add adds a trigram that is greater than those before, with its documents in order.
func (w *segmentWriter) add(gram Gram, docs []uint16) {
	n := len(w.pages)
	if n == 0 || len(w.pages[n-1]) >= pageSize {
		w.starts, w.pages, w.last = append(w.starts, gram), append(w.pages, make([]byte, 0, pageSize+pageSize/4)), gram
		n++
	}
	page := binary.AppendUvarint(w.pages[n-1], uint64(gram-w.last))
	w.pages[n-1], w.last = w.appendList(page, docs, w.docs), gram
}

// appendList appends the shortest form of a list of documents, given those of the segment.
func (w *segmentWriter) appendList(b []byte, docs, all []uint16) []byte {
	form, listed := differences, docs
	if len(docs) > len(all)/2 {
		form, w.rest = others, w.rest[:0]
		i := 0
		for _, doc := range all {
			if i < len(docs) && docs[i] == doc {
				i++
				continue
			}
			w.rest = append(w.rest, doc)
		}
		listed = w.rest
	}
	size := 0
	eachDifference(listed, func(d uint64) { size += (bits.Len64(d|1) + 6) / 7 })
	if size > Documents/8 {
		b = binary.AppendUvarint(b, Documents/8*forms+bitmap)
		var s Set
		for _, doc := range docs {
			s.Add(doc)
		}
		for _, word := range s {
			b = binary.LittleEndian.AppendUint64(b, word)
		}
		return b
	}
	b = binary.AppendUvarint(b, uint64(size*forms+form))
	eachDifference(listed, func(d uint64) { b = binary.AppendUvarint(b, d) })
	return b
}

func eachDifference(docs []uint16, f func(d uint64)) {
	next := uint16(0)
	for _, doc := range docs {
		f(uint64(doc - next))
		next = doc + 1
	}
}

// segment returns what was written.
func (w *segmentWriter) segment() Segment {
	full := make([]uint16, Documents)
	for i := range full {
		full[i] = uint16(i)
	}
	head := w.appendList(nil, w.docs, full)
	last := Gram(0)
	for _, gram := range w.starts {
		head, last = binary.AppendUvarint(head, uint64(gram-last)), gram
	}
	return Segment{len(w.docs), head, w.pages}
}

// Reader reads a segment. It is not safe for concurrent use.
type Reader struct {
	documents list
	starts    []Gram
	page      func(n int) ([]byte, error)
	read      map[int][]byte
	all       *Set // the documents, nil until they are needed
}

// Open reads the head of a segment. page returns one of its pages, by its index.
func Open(head []byte, page func(n int) ([]byte, error)) (*Reader, error) {
	r := &Reader{page: page, read: map[int][]byte{}}
	var rest []byte
	var ok bool
	if r.documents, rest, ok = cutList(head); !ok {
		return nil, ErrDamaged
	}
	for last := Gram(0); len(rest) > 0; {
		d, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, ErrDamaged
		}
		last, rest = last+Gram(d), rest[n:]
		r.starts = append(r.starts, last)
	}
	return r, nil
}

// Documents returns the documents of the segment, not to be changed.
func (r *Reader) Documents() *Set {
	if r.all == nil {
		var full Set
		for i := range full {
			full[i] = ^uint64(0)
		}
		r.all = new(Set)
		r.documents.addTo(r.all, &full)
	}
	return r.all
}

// Find returns the documents that may contain a trigram, nil if none does.
func (r *Reader) Find(gram Gram) (*Set, error) {
	i, ok := slices.BinarySearch(r.starts, gram)
	if !ok {
		i--
	}
	if i < 0 {
		return nil, nil //nolint:nilnil // no documents
	}
	body, ok := r.read[i]
	if !ok {
		var err error
		if body, err = r.page(i); err != nil {
			return nil, err
		}
		r.read[i] = body
	}
	for at := r.starts[i]; len(body) > 0; {
		g, l, rest, ok := cutEntry(body, at)
		if !ok {
			return nil, ErrDamaged
		}
		if g == gram {
			s := new(Set)
			l.addTo(s, r.Documents())
			return s, nil
		}
		if g > gram {
			break
		}
		at, body = g, rest
	}
	return nil, nil //nolint:nilnil // no documents
}

// cutEntry cuts the first entry off a page, given the trigram before.
func cutEntry(page []byte, before Gram) (gram Gram, l list, rest []byte, ok bool) {
	d, n := binary.Uvarint(page)
	if n <= 0 {
		return 0, l, nil, false
	}
	l, rest, ok = cutList(page[n:])
	return before + Gram(d), l, rest, ok
}

func cutList(b []byte) (l list, rest []byte, ok bool) {
	d, n := binary.Uvarint(b)
	size := d / forms
	if n <= 0 || size > uint64(len(b)-n) || d%forms > bitmap || d%forms == bitmap && size != Documents/8 {
		return l, nil, false
	}
	return list{byte(d % forms), b[n:][:size]}, b[n:][size:], true
}

// each calls f with each document of a list of differences.
func (l list) each(f func(doc uint16)) {
	next, body := uint64(0), l.body
	for len(body) > 0 {
		d, n := uint64(body[0]), 1
		if d >= 0x80 {
			if d, n = binary.Uvarint(body); n <= 0 {
				return
			}
		}
		if next += d; next >= Documents {
			return
		}
		f(uint16(next))
		next, body = next+1, body[n:]
	}
}

// addTo adds the documents to a set, given those of the segment.
func (l list) addTo(s, all *Set) {
	switch l.form {
	case differences:
		l.each(s.Add)
	case others:
		*s = *all
		l.each(func(doc uint16) { s[doc/64] &^= 1 << (doc % 64) })
	default: // bitmap
		for i := range s {
			s[i] |= binary.LittleEndian.Uint64(l.body[8*i:])
		}
	}
}

// append appends the documents in order, given those of the segment.
func (l list) append(docs, all []uint16) []uint16 {
	switch l.form {
	case differences:
		l.each(func(doc uint16) { docs = append(docs, doc) })
	case others:
		i := 0
		l.each(func(doc uint16) {
			for ; i < len(all) && all[i] < doc; i++ {
				docs = append(docs, all[i])
			}
			if i < len(all) && all[i] == doc {
				i++
			}
		})
		docs = append(docs, all[i:]...)
	default:
		var s Set
		l.addTo(&s, nil)
		docs = append(docs, s.Documents()...)
	}
	return docs
}

// cursor reads the entries of a segment in order.
type cursor struct {
	r     *Reader
	docs  []uint16 // of the segment
	page  int
	rest  []byte
	gram  Gram
	list  list
	ended bool
}

// next reads the next entry.
func (c *cursor) next() (err error) {
	if len(c.rest) == 0 {
		if c.page++; c.page >= len(c.r.starts) {
			c.ended = true
			return nil
		}
		c.gram = c.r.starts[c.page]
		if c.rest, err = c.r.page(c.page); err != nil {
			return err
		}
	}
	var ok bool
	if c.gram, c.list, c.rest, ok = cutEntry(c.rest, c.gram); !ok {
		return ErrDamaged
	}
	return nil
}
