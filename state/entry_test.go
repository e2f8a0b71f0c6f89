package state

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestTextsAreReadAsWritten fills a log of many chunks with texts of which many are equal.
func TestTextsAreReadAsWritten(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(70, 2))
	log := newTextLog(64 << 20)
	text := func() string {
		return fmt.Sprint(strings.Repeat("text ", 50*rng.IntN(20)), rng.IntN(30))
	}
	id := func() string {
		return [...]string{"", "no uuid", fmt.Sprintf("6f61c0de-0000-4000-a000-%012x", rng.IntN(50)), fmt.Sprintf("6F61C0DE-0000-4000-a000-%012x", 1)}[rng.IntN(4)]
	}
	type written struct {
		at int64
		e  Event
	}
	var all []written
	size := 0
	for range 5000 {
		e := Event{
			ID: id(), Args: text(), Kwargs: text(), RootID: id(), ParentID: id(), Retries: rng.Int64(), Result: text(), Runtime: rng.Float64(),
			Traceback: text(), Present: Fields(rng.Uint32()) & inEntry, Null: Fields(rng.Uint32()&rng.Uint32()) & inEntry,
		}
		if rng.IntN(2) == 0 {
			e.RootID = e.ID
		}
		e.Null &= e.Present
		all = append(all, written{log.add(&e), e})
		for left := e.Present &^ e.Null & inText; left != 0; left &= left - 1 {
			if s := e.text(left & -left); s != nil {
				size += len(*s)
			}
		}
	}
	for _, w := range all {
		var got Event
		if !log.read(&got, w.at, w.e.ID) {
			t.Fatal("an entry is missing")
		}
		want := Event{Present: w.e.Present, Null: w.e.Null}
		for left := want.Present &^ want.Null & inText; left != 0; left &= left - 1 {
			f := left & -left
			if s := want.text(f); s != nil {
				*s = *w.e.text(f)
				own := f == FieldRootID || f == FieldParentID
				if !own && *s != "" && !log.contains(w.at, strings.ToLower(*s)) {
					t.Fatalf("%q is not found", *s)
				}
			}
		}
		if want.Has(FieldRetries) {
			want.Retries = w.e.Retries
		}
		if want.Has(FieldRuntime) {
			want.Runtime = w.e.Runtime
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("read %+v\nwrote %+v", got, want)
		}
	}
	held := 0
	for _, chunk := range log.chunks {
		held += len(chunk)
	}
	if len(log.chunks) < 2 || held > size*3/4 {
		t.Errorf("%d chunks with %d bytes are held for %d bytes of text, half of which is written more than once", len(log.chunks), held, size)
	}
}
