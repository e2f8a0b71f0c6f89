package main_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// assistant starts umbel mcp with an environment, as assistants do.
func assistant(t *testing.T, env ...string) *sdk.ClientSession {
	t.Helper()
	cmd := exec.Command(umbel, "mcp")
	cmd.Env = append(plainEnv(), env...)
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("umbel mcp ends with %v, want status 0", err)
		}
	})
	return s
}

// ask returns the text of a tool's result.
func ask(t *testing.T, s *sdk.ClientSession, tool string, arguments map[string]any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	text, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		t.Fatalf("%s: %v, want text", tool, r.Content)
	}
	return text.Text
}

// umbel mcp has the rights of its token.
func TestAssistantsUseTokens(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := map[string]string{"wrong": "umbel_wrong"}
	for name, more := range map[string][]string{"whole": {"--payload"}, "hidden": nil} {
		status, out, complaint := once(t, nil, nil, append([]string{"token", "create", "--name", name, "--data-dir", dir}, more...)...)
		if status != 0 {
			t.Fatal(complaint)
		}
		tokens[name] = strings.TrimSpace(out)
	}
	d := start(t, []string{"UMBEL_BASIC_AUTH=ann:s3cret"}, "demo", "--data-dir", dir, "--prefix", "/ops")
	url := "UMBEL_URL=" + d.url
	arguments := map[string]any{"query": "state:success args:*", "limit": 3}
	for name, want := range map[string]string{"whole": `"args":`, "hidden": "you may not see arguments", "wrong": "401 Unauthorized", "": "401 Unauthorized"} {
		s := assistant(t, url, "UMBEL_TOKEN="+tokens[name])
		// The first task of the demo may not have succeeded yet.
		eventually(t, 20*time.Second, func() error {
			if got := ask(t, s, "search_tasks", arguments); !strings.Contains(got, want) {
				return fmt.Errorf("with the token %q: %s, want %s", name, got, want)
			}
			return nil
		})
	}
	if got := ask(t, assistant(t, url, "UMBEL_TOKEN="+tokens["hidden"]), "list_queues", nil); !strings.Contains(got, `"items":`) {
		t.Errorf("list_queues: %s", got)
	}
}

func TestAssistantsOfAServerThatIsAway(t *testing.T) {
	t.Parallel()
	s := assistant(t, "UMBEL_URL=http://127.0.0.1:1")
	if got := ask(t, s, "status", nil); !strings.Contains(got, "no response from Umbel") {
		t.Errorf("status: %s, want no response", got)
	}
	for _, url := range []string{"127.0.0.1:5555", "ftp://x", filepath.Join("/", "x")} {
		if status, _, complaint := once(t, nil, nil, "mcp", "--url", url); status != 2 || !strings.Contains(complaint, "--url must be like") {
			t.Errorf("--url %s: status %d, %s", url, status, complaint)
		}
	}
}
