package state

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestPackingLosesNothing packs and unpacks chains of any records, with extreme values among them.
func TestPackingLosesNothing(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(70, 1))
	number := func() int64 {
		return [...]int64{0, 1, rng.Int64N(1000), 1_790_000_000_000_000 + rng.Int64N(1e9), 1 << 62, -rng.Int64()}[rng.IntN(6)]
	}
	for range 2000 {
		c := New(Options{})
		r := &row{clock: number(), micros: number(), summary: summary{state: codeSuccess}}
		var want []record
		for range 1 + rng.IntN(4) {
			rec := record{
				micros: number(), received: number(), clock: number(), repaired: number(), text: number(), process: rng.Uint32() >> rng.IntN(32),
				route: rng.Uint32() >> rng.IntN(32), kind: TaskSent + Kind(rng.IntN(int(TaskCustom))), flags: recordFlags(rng.Uint32()), n: uint16(rng.Uint32()),
			}
			want = append(want, rec)
			c.enchain(r, &rec)
			r.count++
		}
		c.pack(r)
		if !r.packed {
			t.Fatalf("%d records are not packed", len(want))
		}
		for _, what := range []string{"packed", "unpacked"} {
			var got []record
			for _, rec := range c.chain(r, nil) {
				o := *rec
				o.next = 0
				got = append(got, o)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s: %+v\nwant %+v", what, got, want)
			}
			c.unpack(r)
		}
		c.releaseRecords(r)
		if c.records.used != 0 || c.packs.used() != 0 {
			t.Fatalf("%d records and %d packs are left", c.records.used, c.packs.used())
		}
	}
}
