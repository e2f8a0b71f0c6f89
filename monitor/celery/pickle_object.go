package celery

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"
)

func (c pickleClass) String() string {
	if c.module == "" || c.module == "builtins" {
		return c.name
	}
	return c.module + "." + c.name
}

// object writes the parts of an object.
func (w *pickleWriter) object(o *pickleObject, depth int) error {
	if text, ok := o.text(); ok {
		w.quote(text)
		return nil
	}
	if o.writing {
		w.quote("…")
		return nil
	}
	o.writing = true
	defer func() { o.writing = false }()
	switch o.class.String() {
	case "set", "frozenset", "list", "tuple", "collections.deque":
		items := o.items.items
		if len(o.args) > 0 {
			if l, ok := o.args[0].(*pickleList); ok {
				items = slices.Concat(l.items, items)
			}
		}
		return w.list(&pickleList{items}, depth)
	case "dict", "collections.OrderedDict", "collections.defaultdict", "collections.Counter":
		if len(o.pairs.keys) > 0 || len(o.args) == 0 {
			return w.dict(&o.pairs, depth)
		}
	}
	d := pickleDict{keys: []any{"__class__"}, values: []any{o.class.String()}}
	add := func(name string, v any, present bool) {
		if present {
			d.keys, d.values = append(d.keys, name), append(d.values, v)
		}
	}
	add("args", &pickleList{o.args}, len(o.args) > 0)
	add("state", o.state, o.state != nil)
	add("items", &o.items, len(o.items.items) > 0)
	add("pairs", &o.pairs, len(o.pairs.keys) > 0)
	return w.dict(&d, depth)
}

// text is the object as text, if that is clearer than its parts.
func (o *pickleObject) text() (string, bool) {
	var first any
	if len(o.args) > 0 {
		first = o.args[0]
	}
	switch o.class.String() {
	case "datetime.datetime", "datetime.date", "datetime.time":
		b, _ := first.([]byte)
		return o.moment(b)
	case "datetime.timedelta":
		if d, ok := o.duration(); ok {
			return d.String(), true
		}
	case "decimal.Decimal":
		text, ok := first.(string)
		return text, ok && len(o.args) == 1
	case "uuid.UUID":
		return o.uuid()
	}
	return "", false
}

// moment reads a date, a time or both: year (2 bytes), month, day, hour, minute, second, µs (3).
func (o *pickleObject) moment(b []byte) (string, bool) {
	if len(b) != 4 && len(b) != 6 && len(b) != 10 {
		return "", false
	}
	text := ""
	if len(b) != 6 {
		text = fmt.Sprintf("%04d-%02d-%02d", int(b[0])<<8|int(b[1]), b[2]&0x7f, b[3])
		b = b[4:]
	}
	if len(b) == 0 {
		return text, true
	}
	if text != "" {
		text += "T"
	}
	text += fmt.Sprintf("%02d:%02d:%02d", b[0]&0x7f, b[1], b[2])
	if us := int(b[3])<<16 | int(b[4])<<8 | int(b[5]); us > 0 {
		text += fmt.Sprintf(".%06d", us)
	}
	return text + o.zone(), true
}

// zone is the offset of a time, or the name of its zone, empty if it has none.
func (o *pickleObject) zone() string {
	if len(o.args) < 2 {
		return ""
	}
	tz, ok := o.args[1].(*pickleObject)
	switch {
	case !ok:
		return ""
	case len(tz.args) == 0:
		return " " + tz.class.String()
	}
	switch v := tz.args[0].(type) {
	case *pickleObject:
		if d, ok := v.duration(); ok {
			return time.Unix(0, 0).In(time.FixedZone("", int(d.Seconds()))).Format("-07:00")
		}
	case string:
		return " " + v
	}
	return " " + tz.class.String()
}

// duration reads a timedelta: days, seconds, µs.
func (o *pickleObject) duration() (time.Duration, bool) {
	if o.class.String() != "datetime.timedelta" || len(o.args) != 3 {
		return 0, false
	}
	var n [3]int64
	for i, limit := range []int64{100_000, 1e8, 1e8} {
		v, ok := pickledInt(o.args[i])
		if !ok || v < -limit || v > limit {
			return 0, false
		}
		n[i] = v
	}
	return time.Duration(n[0])*24*time.Hour + time.Duration(n[1])*time.Second + time.Duration(n[2])*time.Microsecond, true
}

// pickledInt is an integer of either type that a pickle may have it in.
func pickledInt(v any) (int64, bool) {
	switch n := v.(type) {
	case int64:
		return n, true
	case *big.Int:
		return n.Int64(), n.IsInt64()
	}
	return 0, false
}

// uuid reads a UUID from its state.
func (o *pickleObject) uuid() (string, bool) {
	d, ok := o.state.(*pickleDict)
	if !ok {
		return "", false
	}
	for i, key := range d.keys {
		n, big := d.values[i].(*big.Int)
		if key != "int" || !big || n.Sign() < 0 || n.BitLen() > 128 {
			continue
		}
		var id uuid.UUID
		n.FillBytes(id[:])
		return id.String(), true
	}
	return "", false
}
