package trigram_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/monitor/history/trigram"
)

func open(t interface{ Fatal(args ...any) }, s trigram.Segment) *trigram.Reader {
	r, err := trigram.Open(s.Head, func(n int) ([]byte, error) { return s.Pages[n], nil })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func grams(text string) []trigram.Gram { return trigram.Append(nil, text) }

// check compares what a segment finds for trigrams of texts with the texts that contain them.
func check(t *rapid.T, r *trigram.Reader, texts map[uint16]string, looked []trigram.Gram) {
	for _, g := range looked {
		s, err := r.Find(g)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []uint16
		if s != nil {
			got = s.Documents()
		}
		for doc, text := range texts {
			if slices.Contains(grams(text), g) {
				want = append(want, doc)
			}
		}
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Fatalf("%x is in %v, found in %v", g, want, got)
		}
	}
}

// TestEveryTrigramIsFound builds segments of random texts, and merges them without some documents.
func TestEveryTrigramIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringOfN(rapid.RuneFrom([]rune("ab0é€\U0001F600")), 0, 12, -1), rapid.String())
		looked := grams(rapid.String().Draw(t, "not there") + "abab0é€\U0001F600")
		texts, kept := map[uint16]string{}, map[uint16]string{}
		var keep trigram.Set
		var readers []*trigram.Reader
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			part := rapid.MapOfN(rapid.OneOf(rapid.Uint16Max(40), rapid.Uint16()), text, 0, 40).Draw(t, "texts")
			var b trigram.Builder
			var docs []uint16
			own := map[uint16]string{}
			for doc := range part {
				if _, twice := texts[doc]; !twice {
					docs = append(docs, doc)
				}
			}
			slices.Sort(docs)
			for _, doc := range docs {
				own[doc], texts[doc] = part[doc], part[doc]
				looked = append(looked, grams(part[doc])...)
				if doc%3 != 0 {
					kept[doc] = part[doc]
					keep.Add(doc)
				}
				b.Add(doc, part[doc])
			}
			r := open(t, b.Segment())
			check(t, r, own, looked)
			readers = append(readers, r)
		}
		for _, x := range []struct {
			keep *trigram.Set
			want map[uint16]string
		}{{nil, texts}, {&keep, kept}} {
			s, err := trigram.Merge(readers, x.keep)
			if err != nil {
				t.Fatal(err)
			}
			r := open(t, s)
			if n := r.Documents().Len(); n != len(x.want) {
				t.Fatalf("%d documents, want %d", n, len(x.want))
			}
			check(t, r, x.want, looked)
		}
	})
}

// TestAFullBlock has a trigram in all documents, one in half, one in most and one in few, on several pages.
func TestAFullBlock(t *testing.T) {
	t.Parallel()
	var readers []*trigram.Reader
	for part := range 8 {
		var b trigram.Builder
		for doc := part; doc < trigram.Documents; doc += 8 {
			text := fmt.Sprintf("all %x", doc)
			if doc*7%16 < 8 {
				text += " half"
			}
			if doc%100 != 0 {
				text += " most"
			}
			b.Add(uint16(doc), text)
		}
		readers = append(readers, open(t, b.Segment()))
	}
	s, err := trigram.Merge(readers, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Pages) < 2 {
		t.Errorf("%d pages", len(s.Pages))
	}
	r := open(t, s)
	for text, want := range map[string]func(doc int) bool{
		"all":  func(int) bool { return true },
		"hal":  func(doc int) bool { return doc*7%16 < 8 },
		"mos":  func(doc int) bool { return doc%100 != 0 },
		"abc":  func(doc int) bool { return strings.Contains(fmt.Sprintf("%x", doc), "abc") },
		"none": nil,
	} {
		found, err := r.Find(grams(text)[0])
		if err != nil {
			t.Fatal(err)
		}
		for doc := range trigram.Documents {
			if has := found != nil && found.Has(uint16(doc)); has != (want != nil && want(doc)) {
				t.Fatalf("%s in %d: %v", text, doc, has)
			}
		}
	}
}

// FuzzOpen reads segments of any bytes.
func FuzzOpen(f *testing.F) {
	var b trigram.Builder
	b.Add(1, "abcd")
	b.Add(9, "bcde")
	s := b.Segment()
	f.Add(s.Head, s.Pages[0])
	f.Fuzz(func(t *testing.T, head, page []byte) {
		r, err := trigram.Open(head, func(int) ([]byte, error) { return page, nil })
		if err != nil || len(head) > 9000 {
			return
		}
		_, _ = r.Find(grams("abc")[0])
		_, _ = trigram.Merge([]*trigram.Reader{r}, nil)
	})
}

func BenchmarkBuild(b *testing.B) {
	text := func(i int) string {
		return fmt.Sprintf("('order-%d', %d.%d)\n{'customer': 'c%06x', 'currency': 'eur', 'retry': false}\n{'status': 'paid', 'ref': '%08x'}", i, i%997, i%100, i*7919%0xffffff, i*104729%0xfffffff)
	}
	const n = 4096
	var size, most int
	b.ReportAllocs()
	for b.Loop() {
		var readers []*trigram.Reader
		for part := range 8 {
			var x trigram.Builder
			for i := range n {
				x.Add(uint16(part*n+i), text(part*n+i))
			}
			readers = append(readers, open(b, x.Segment()))
		}
		s, err := trigram.Merge(readers, nil)
		if err != nil {
			b.Fatal(err)
		}
		size = len(s.Head)
		for _, p := range s.Pages {
			size, most = size+len(p), max(most, len(p))
		}
	}
	b.ReportMetric(float64(size)/(8*n), "B/doc")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/(8*n), "µs/doc")
	b.ReportMetric(float64(most), "B/largest-page")
}
