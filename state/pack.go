package state

import "encoding/binary"

// A row whose task has ended for good is packed: its records are a string of bytes, a quarter as long, since hardly any
// more of them will come. One that does come unpacks the row, and packs it again when it is folded in.
//
// A packed record is: its kind, in the low half of a byte, with packing flags in the high half; the process, unless it is
// that of the record before; flags, n and route, unless all are zero; micros, repaired and the distance from clock to
// repaired, as distances from those of the record before, or of the row; received, as the distance from micros, and text,
// as the distance from the text before, if it has them.
const (
	packSameProcess = 0x10
	packDetails     = 0x20 // some of flags, n and route is not zero
	packReceived    = 0x40
	packText        = 0x80

	packStep = 8   // bytes by which the widths of packs differ
	maxPack  = 256 // longer ones are not worth it
)

// packs holds the packed records of rows by width. Those of narrow tasks waste little, and what is freed fits the next.
type packs [maxPack / packStep]byteSlab

func (p *packs) init() {
	for i := range p {
		p[i].width = (i + 1) * packStep
	}
}

// slab returns the one for packs of n bytes, above 0.
func (p *packs) slab(n uint32) *byteSlab { return &p[(n-1)/packStep] }

// pack packs the records of a row if its task has ended for good.
func (c *Cluster) pack(r *row) {
	if r.packed || c.unpackedOnly || r.head == 0 || !c.states.final(r.state) {
		return
	}
	b := c.packing[:0]
	p := packedOf(r)
	for i := r.head; i != 0; {
		rec := c.records.at(i)
		b = p.append(b, rec)
		i = rec.next
	}
	if c.packing = b; len(b) > maxPack {
		return
	}
	c.releaseRecords(r)
	slab := c.packs.slab(uint32(len(b)))
	r.head, r.tail, r.packed = slab.alloc(), uint32(len(b)), true
	copy(slab.at(r.head), b)
}

// unpack makes the records of a row a chain again.
func (c *Cluster) unpack(r *row) {
	if !r.packed {
		return
	}
	w := c.walk(r) // it goes on in the pack after that is released: nothing else is packed meanwhile
	c.releaseRecords(r)
	for rec := w.next(); rec != nil; rec = w.next() {
		c.enchain(r, rec)
	}
}

// packed writes and reads packed records. Each is a distance from the one before.
type packed struct {
	before record
	text   int64 // the newest one that is not 0
}

// packedOf begins the records of a row.
func packedOf(r *row) packed {
	return packed{before: record{micros: r.micros, repaired: r.clock, clock: r.clock}}
}

// append encodes the next record.
func (p *packed) append(b []byte, e *record) []byte {
	head := byte(e.kind)
	if e.process == p.before.process {
		head |= packSameProcess
	}
	if e.flags != 0 || e.n != 0 || e.route != 0 {
		head |= packDetails
	}
	if e.received != 0 {
		head |= packReceived
	}
	if e.text != 0 {
		head |= packText
	}
	b = append(b, head)
	if head&packSameProcess == 0 {
		b = binary.AppendUvarint(b, uint64(e.process))
	}
	if head&packDetails != 0 {
		b = append(b, byte(e.flags))
		b = binary.AppendUvarint(b, uint64(e.n))
		b = binary.AppendUvarint(b, uint64(e.route))
	}
	b = binary.AppendVarint(b, e.micros-p.before.micros)
	b = binary.AppendVarint(b, e.repaired-p.before.repaired)
	b = binary.AppendVarint(b, e.repaired-e.clock-(p.before.repaired-p.before.clock))
	if e.received != 0 {
		b = binary.AppendVarint(b, e.received-e.micros)
	}
	if e.text != 0 {
		b = binary.AppendVarint(b, e.text-p.text)
		p.text = e.text
	}
	p.before = *e
	return b
}

// decode reads the next record. It is valid until the next call.
func (p *packed) decode(b *byteReader[[]byte]) *record {
	r := &p.before
	head, ahead := b.byte(), r.repaired-r.clock
	r.kind = Kind(head & 0x0f)
	if head&packSameProcess == 0 {
		r.process = uint32(b.uvarint())
	}
	r.flags, r.n, r.route, r.received, r.text = 0, 0, 0, 0, 0
	if head&packDetails != 0 {
		r.flags, r.n, r.route = recordFlags(b.byte()), uint16(b.uvarint()), uint32(b.uvarint())
	}
	r.micros += b.varint()
	r.repaired += b.varint()
	r.clock = r.repaired - ahead - b.varint()
	if head&packReceived != 0 {
		r.received = r.micros + b.varint()
	}
	if head&packText != 0 {
		p.text += b.varint()
		r.text = p.text
	}
	return r
}

// walk goes through the records of a row in order of arrival.
type walk struct {
	c    *Cluster
	head uint32 // next of a chain
	rest byteReader[[]byte]
	packed
}

func (c *Cluster) walk(r *row) walk {
	if !r.packed {
		return walk{c: c, head: r.head}
	}
	return walk{c: c, rest: byteReader[[]byte]{rest: c.packs.slab(r.tail).at(r.head)[:r.tail]}, packed: packedOf(r)}
}

// next returns the next record, nil at the end. That of a packed row is valid until the next call.
func (w *walk) next() *record {
	if w.head != 0 {
		rec := w.c.records.at(w.head)
		w.head = rec.next
		return rec
	}
	if len(w.rest.rest) == 0 {
		return nil
	}
	return w.decode(&w.rest)
}
