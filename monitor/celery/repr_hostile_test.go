package celery_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
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

// What is longer than 64 KiB is not read at all.
func TestHostileReprsTakeLittleTime(t *testing.T) { //nolint:tparallel // measures time
	t.Parallel()
	usual := "[" + strings.Repeat("'a', ", 64<<10/5-2) + "1]"
	if _, ok := celery.ParseRepr(usual); !ok {
		t.Fatal("a usual text was not read")
	}
	longer := hostileReprs(1 << 20)
	for name, repr := range hostileReprs(64 << 10) {
		t.Run(name, func(t *testing.T) {
			testenv.AtMost(t, 30, func() { celery.ParseRepr(usual) }, func() { celery.ParseRepr(repr) })
			if _, ok := celery.ParseRepr(longer[name]); ok {
				t.Error("a text of 1 MiB was read")
			}
		})
	}
}
