package flower_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the list of differences in the documentation")

// The documentation lists the differences that the contract has.
func TestDocumentationListsAllDifferences(t *testing.T) {
	t.Parallel()
	const name, begin, end = "../../docs/flower.md", "<!-- differences -->\n", "<!-- end of differences -->\n"
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	have, after, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("%s has no list between %q and %q", name, begin, end)
	}
	var want strings.Builder
	want.WriteString("\n")
	for _, key := range slices.Sorted(maps.Keys(differences)) {
		fmt.Fprintf(&want, "- **%s**: %s\n", key, differences[key])
	}
	want.WriteString("\n")
	if *update {
		if err := os.WriteFile(name, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), have); diff != "" {
		t.Errorf("%s (-want +got); go test ./web/flower -run Documentation -update writes it:\n%s", name, diff)
	}
}
