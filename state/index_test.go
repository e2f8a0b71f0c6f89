package state

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIndexIsAMap adds and removes keys in turns, in phases in which there are more and fewer of them.
func TestIndexIsAMap(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 9))
	var rows slab[row]
	x := taskIndex{rows: &rows, seed: maphash.MakeSeed()}
	want := make(map[taskKey]uint32)
	var keys []taskKey
	for step := range 200_000 {
		if grows := step/20_000%2 == 0; len(keys) == 0 || random.IntN(10) < 3 != grows {
			k, _ := key(fmt.Sprint(step))
			i := rows.alloc()
			rows.at(i).id = k
			x.add(k, i)
			want[k], keys = i, append(keys, k)
		} else {
			at := random.IntN(len(keys))
			k := keys[at]
			x.remove(k)
			rows.release(want[k])
			delete(want, k)
			keys[at] = keys[len(keys)-1]
			keys = keys[:len(keys)-1]
			if x.find(k) != 0 {
				t.Fatalf("step %d: a removed key is found", step)
			}
		}
		if x.len() != len(want) {
			t.Fatalf("step %d: %d keys, want %d", step, x.len(), len(want))
		}
		if step%10_000 != 0 {
			continue
		}
		for k, i := range want {
			if got := x.find(k); got != i {
				t.Fatalf("step %d: row %d, want %d", step, got, i)
			}
		}
		if all := slices.Collect(x.all()); len(all) != len(want) {
			t.Fatalf("step %d: %d rows of %d", step, len(all), len(want))
		}
	}
}
