package floweroptions_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/floweroptions"
)

var update = flag.Bool("update", false, "write the table of the documentation")

// The documentation lists what the code does.
func TestDocumentationListsAllOptions(t *testing.T) {
	t.Parallel()
	const name, begin, end = "../../docs/flower-options.md", "<!-- options -->\n", "<!-- end of options -->\n"
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	have, after, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatalf("%s has no table between %q and %q", name, begin, end)
	}
	var want strings.Builder
	want.WriteString("\n| option | variable | in Umbel |\n|---|---|---|\n")
	for _, o := range floweroptions.Options() {
		flag := "`--" + o.Name + "`"
		if o.Variable {
			flag = ""
		}
		fmt.Fprintf(&want, "| %s | `%s` | %s |\n", flag, o.Env(), o.Effect)
	}
	want.WriteString("\n")
	if *update {
		if err := os.WriteFile(name, []byte(before+begin+want.String()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want.String(), have); diff != "" {
		t.Errorf("%s (-code +file); go test ./internal/floweroptions -update writes it:\n%s", name, diff)
	}
}
