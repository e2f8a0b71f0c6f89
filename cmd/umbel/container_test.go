package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The image holds nothing but the binary and certificates, runs as nobody in particular, and tells how it is.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	_, final, ok := strings.Cut(string(text), "\nFROM scratch\n")
	if !ok || strings.Contains(final, "FROM ") || strings.Contains(final, "RUN ") {
		t.Fatalf("the last stage is not from scratch:\n%s", text)
	}
	for _, line := range []string{"USER 65532:65532", "VOLUME /data", "EXPOSE 5555", `ENTRYPOINT ["/umbel"]`, `CMD ["serve"]`} {
		if !slices.Contains(strings.Split(final, "\n"), line) {
			t.Errorf("the last stage has no line %s", line)
		}
	}
	for line := range strings.SplitSeq(final, "\n") {
		if strings.HasPrefix(line, "COPY ") && !strings.HasPrefix(line, "COPY --from=build ") {
			t.Errorf("%s: copies from outside", line)
		}
	}
	module, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	if !strings.Contains(string(text), "golang:"+string(goVersion[1])+"-") {
		t.Errorf("the image is not built with Go %s, as go.mod says", goVersion[1])
	}
	check := regexp.MustCompile(`(?m)^HEALTHCHECK .* CMD (\[.*\])$`).FindStringSubmatch(final)
	var command []string
	if check == nil || json.Unmarshal([]byte(check[1]), &command) != nil || command[0] != "/umbel" {
		t.Fatalf("HEALTHCHECK = %q", check)
	}
	if status, _, complaint := once(t, nil, nil, append(command[1:], "--help")...); status != 0 {
		t.Errorf("%v: %s", command, complaint)
	}
}

// Variables in the image and in the example of Compose are those of umbel serve.
func TestContainerVariablesExist(t *testing.T) {
	t.Parallel()
	_, help, _ := once(t, nil, nil, "serve", "--help")
	help = strings.Join(strings.Fields(help), "") // it is wrapped
	for _, name := range []string{"../../Dockerfile", "../../deploy/docker-compose.yml", "../../deploy/kubernetes/statefulset.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`\bUMBEL_[A-Z_]+`).FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s sets no variable", name)
		}
		for _, variable := range found {
			if !strings.Contains(help, "$"+variable) {
				t.Errorf("%s: %s is not one of umbel serve", name, variable)
			}
		}
	}
}

// Actions of others run what was looked at: tags can be moved, commits cannot.
func TestActionsArePinned(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("../../.github/workflows/*.yml")
	if err != nil || len(names) == 0 {
		t.Fatalf("workflows: %q, %v", names, err)
	}
	pinned := regexp.MustCompile(`^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range regexp.MustCompile(`(?m)^[ -]*uses: *(.*)$`).FindAllStringSubmatch(string(text), -1) {
			if !pinned.MatchString(use[1]) && !strings.HasPrefix(use[1], "./") {
				t.Errorf("%s: %s is not owner/name@commit # version", name, use[1])
			}
		}
	}
}
