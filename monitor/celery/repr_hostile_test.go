package celery_test

import (
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
)

// hostileReprs are texts that take as long as any of their size.
func hostileReprs(size int) map[string]string {
	fill := func(begin, item, end string) string {
		return begin + strings.TrimSuffix(strings.Repeat(item+", ", (size-len(begin)-len(end))/(len(item)+2)), ", ") + end
	}
	return map[string]string{
		"integers":   fill("[", "1", "]"),
		"floats":     fill("[", "0.12345678901234568", "]"),
		"subnormal":  fill("[", "5e-324", "]"),
		"halves":     fill("[", "9007199254740992.0", "]"),
		"texts":      fill("[", "''", "]"),
		"lists":      fill("[", "[]", "]"),
		"text":       "['" + strings.Repeat("a", size-4) + "']",
		"quotes":     "['" + strings.Repeat(`\'a`, size/3-2) + "']",
		"integer":    "[" + strings.Repeat("9", size-2) + "]",
		"nesting":    strings.Repeat("[", size),
		"dicts":      fill("[", "{'a': {}}", "]"),
		"code":       "[" + strings.Repeat("__import__('os').system('true') or ", size/35) + "1]",
		"call":       "(" + strings.Repeat("eval(", size/5),
		"not a text": "['" + strings.Repeat(`\\`, size/2-2) + "']",
	}
}

func BenchmarkHostileReprs(b *testing.B) {
	for name, repr := range hostileReprs(64 << 10) {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				celery.ParseRepr(repr)
			}
		})
	}
}

// BenchmarkHostileReprs shows less than 10 ms for each. The test leaves room for machines ten times slower.
func TestHostileReprsTakeBoundedTime(t *testing.T) {
	t.Parallel()
	for _, size := range []int{64 << 10, 1 << 20} {
		for name, repr := range hostileReprs(size) {
			least := time.Hour
			for range 20 {
				start := time.Now()
				_, ok := celery.ParseRepr(repr)
				if least = min(least, time.Since(start)); least < 100*time.Millisecond {
					break
				}
				if ok && size > 64<<10 {
					t.Errorf("%s of %d bytes was read", name, size)
				}
			}
			if least >= 100*time.Millisecond {
				t.Errorf("%s of %d bytes took %v", name, size, least)
			}
		}
	}
}
