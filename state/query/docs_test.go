package query_test

import (
	"os"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state/query"
)

func TestDocumentation(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	examples := 0
	for i, block := range strings.Split(doc, "```") {
		lines, ok := strings.CutPrefix(block, "query\n")
		if i%2 == 0 || !ok {
			continue
		}
		for line := range strings.Lines(lines) {
			examples++
			if _, err := query.Parse(line); err != nil {
				t.Errorf("example %q: %v", line, err)
			}
		}
	}
	if examples < 40 {
		t.Errorf("%d examples, want all of them to be tried", examples)
	}
	for _, f := range query.Fields() {
		if !strings.Contains(doc, "\n| `"+f.String()+":` |") {
			t.Errorf("field %s is not in the table", f)
		}
	}
}
