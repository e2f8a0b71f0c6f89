package about_test

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/about"
)

// TestLicencesAreThoseOfTheModules compares the list with what the program imports on the systems that releases are for.
func TestLicencesAreThoseOfTheModules(t *testing.T) {
	t.Parallel()
	modules := map[string]bool{}
	for _, system := range []string{"linux", "windows", "darwin"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "../../cmd/umbel")
		cmd.Env = append(cmd.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", system, err)
		}
		for path := range strings.FieldsSeq(string(out)) {
			modules[path] = true
		}
	}
	known := about.Licences()
	if diff := cmp.Diff(slices.Sorted(maps.Keys(modules)), slices.Sorted(maps.Keys(known))); diff != "" {
		t.Errorf("modules in licences.txt (-imported +listed):\n%s", diff)
	}
	for module, licence := range known {
		if licence == "" {
			t.Errorf("%s has no licence", module)
		}
	}
}

func TestReadHasTheToolchain(t *testing.T) {
	t.Parallel()
	b := about.Read()
	if b.Go == "" || !strings.Contains(b.Platform, "/") || !slices.ContainsFunc(b.Parts, func(p about.Part) bool { return p.Name == "Go" && p.Version == b.Go }) {
		t.Errorf("build = %+v, want the version of Go and the platform", b)
	}
}
