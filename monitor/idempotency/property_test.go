package idempotency_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

// value draws Go values as JSON has them.
func value() *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(), rapid.String().AsAny())
	level := leaf
	for range 3 {
		below := level
		level = rapid.OneOf(leaf, rapid.SliceOfN(below, 0, 4).AsAny(), rapid.MapOfN(rapid.String(), below, 0, 4).AsAny())
	}
	return level
}

func TestCanonicalFormIsItsOwn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v, err := idempotency.ValueOf(value().Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		again, err := idempotency.Parse([]byte(v.String()))
		if err != nil || again.String() != v.String() {
			t.Fatalf("%s was read as %s, %v", v, again, err)
		}
	})
}

func TestOrderOfKeysDoesNotCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.String(), 1, 20, rapid.ID[string]).Draw(t, "keys")
		text := func(keys []string) idempotency.Value {
			b := []byte("{")
			for i, key := range keys {
				if i > 0 {
					b = append(b, ',')
				}
				quoted, err := json.Marshal(key)
				if err != nil {
					t.Fatal(err)
				}
				b = append(append(b, quoted...), ":0"...)
			}
			v, err := idempotency.Parse(append(b, '}'))
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		a, errA := idempotency.Fingerprint("t", text(keys))
		b, errB := idempotency.Fingerprint("t", text(rapid.Permutation(keys).Draw(t, "permutation")))
		if errA != nil || errB != nil || a != b {
			t.Fatalf("%s, %v and %s, %v", a, errA, b, errB)
		}
	})
}

func TestFieldsThatDoNotCountDoNotChangeTheFingerprint(t *testing.T) {
	t.Parallel()
	f, err := idempotency.New(idempotency.Options{Without: []string{"at", "lines[*].at"}})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		rest := value().Draw(t, "rest")
		call := func(name string) string {
			at := value().Draw(t, name)
			kwargs, err := idempotency.ValueOf(map[string]any{"at": at, "lines": []any{map[string]any{"at": at, "n": rest}}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Fingerprint("t", kwargs)
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		if a, b := call("a"), call("b"); a != b {
			t.Fatalf("%s and %s", a, b)
		}
	})
}

// FuzzParse checks that what is read has a canonical form that reads as itself, unless it holds surrogates, of which
// two that were apart can meet.
func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"a":[1,2.5,"\ud800\u00fc"],"a":NaN}`, `-0.0e-5`, `[[],{}]`, `"\"`, `{"b":0,"a":-Infinity}`, "\xed\xa0\x80"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := idempotency.Parse(text)
		if err != nil {
			return
		}
		once := v.String()
		for _, c := range []byte(once) {
			if c < ' ' || c > '~' {
				t.Fatalf("%q is not printable ASCII", once)
			}
		}
		again, err := idempotency.Parse([]byte(once))
		if len(once) > idempotency.MaxBytes {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", once, err)
		}
		third, err := idempotency.Parse([]byte(again.String()))
		if err != nil || third.String() != again.String() {
			t.Fatalf("%q reads as %q, %v", again, third, err)
		}
	})
}
