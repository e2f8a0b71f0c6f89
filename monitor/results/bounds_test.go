package results_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/results"
)

// Every level of children is read anew, so that their depth is bounded and not their length alone.
func TestDeepChildrenAreNotFollowed(t *testing.T) { //nolint:paralleltest // it measures the process
	record := func(levels int, pad string) []byte {
		return []byte(`{"status":"SUCCESS","children":` + strings.Repeat(`[[["id",null],`, levels) + `"` + pad + `"` + strings.Repeat(`]]`, levels) + `}`)
	}
	for name, tt := range map[string]struct {
		levels, pad int
		want        []string
	}{
		"groups of groups": {levels: 3, want: []string{"id", "id", "id"}},
		"deep":             {levels: 2_000, pad: 900_000, want: strings.Fields(strings.Repeat("id ", 9))},
		"long":             {levels: 2_000, pad: 4 << 20},
	} {
		b := record(tt.levels, strings.Repeat("x", tt.pad))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := results.Parse("a", b)
		runtime.ReadMemStats(&after)
		if diff := cmp.Diff(r.Children, tt.want); err != nil || diff != "" {
			t.Errorf("%s: error %v, got - want +\n%s", name, err, diff)
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > 100<<20 {
			t.Errorf("%s: %d bytes allocated for %d", name, got, len(b))
		}
	}
}
