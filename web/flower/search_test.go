package flower_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/flower"
)

func TestSearchesThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"ab":                        "Substring search terms must contain at least 3 characters at position 0.",
		"abc OR":                    "OR must be followed by a search term at position 4.",
		"OR abc":                    "Expected a search term at position 0.",
		"abc)":                      "Unexpected ')' at position 3.",
		"(abc":                      "Missing closing parenthesis at position 0.",
		"((((((xyz))))))":           "Query nesting exceeds 5 levels at position 5.",
		"abc or def":                "Substring search terms must contain at least 3 characters at position 4.",
		"abc AND AND def":           "AND must be followed by a search term at position 4.",
		"abc ()":                    "Empty group at position 4.",
		`☃☃☃ "abc`:                  "Unterminated quoted phrase at position 4.",
		`  abc ""`:                  "Empty search term at position 4.",
		"abc NOT def":               "NOT is not supported at position 4.",
		`"-abc"`:                    "Negation with '-' is not supported at position 0.",
		"state:(A OR B)":            "Search qualifier requires a value at position 0.",
		strings.Repeat("a", 2049):   "Query exceeds 2048 characters.",
		strings.Repeat("abc ", 129): "Query exceeds 128 tokens.",
		"args:ab":                   "Substring search terms must contain at least 3 characters at position 0.",
		"kwargs:ab":                 "Substring search terms must contain at least 3 characters at position 0.",
		"Name:":                     "Search qualifier requires a value at position 0.",
	}
	for text, want := range tests {
		if _, err := flower.SearchTree(text); err == nil || err.Error() != want {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

// answerOfFlower is what testdata/search.py says.
type answerOfFlower struct {
	Tree  any      `json:"tree"`
	Error string   `json:"error"`
	Found []string `json:"found"`
}

// newFlowersSearch returns Flower's own search.
func newFlowersSearch(t *testing.T) func(query string, tasks []map[string]any) (answerOfFlower, error) {
	t.Helper()
	cmd := exec.Command(testenv.Flower(t), filepath.Join("testdata", "search.py"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("search.py: %v", err)
		}
	})
	var mu sync.Mutex
	answers := bufio.NewReaderSize(out, 1<<20)
	return func(query string, tasks []map[string]any) (a answerOfFlower, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err := json.NewEncoder(in).Encode(map[string]any{"query": query, "tasks": tasks}); err != nil {
			return a, err
		}
		line, err := answers.ReadBytes('\n')
		if err != nil {
			return a, err
		}
		return a, json.Unmarshal(line, &a)
	}
}

// TestSearchIsFlowers parses random searches and looks for random tasks as Flower does.
func TestSearchIsFlowers(t *testing.T) {
	t.Parallel()
	ask := newFlowersSearch(t)
	rapid.Check(t, func(r *rapid.T) {
		query := drawSearch(r)
		tasks, given := drawTasks(r)
		want, err := ask(query, given)
		if err != nil {
			r.Fatalf("ask Flower: %v", err)
		}
		got, err := flower.SearchTree(query)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if message != want.Error {
			r.Fatalf("%q: error %q, of Flower %q", query, message, want.Error)
		}
		if err != nil {
			return
		}
		if diff := cmp.Diff(want.Tree, got); diff != "" {
			r.Fatalf("%q (-Flower +Umbel):\n%s", query, diff)
		}
		for i := range tasks {
			wanted := slices.Contains(want.Found, tasks[i].ID)
			found, selected := flower.Find(query, &tasks[i])
			if found != wanted {
				r.Fatalf("%q finds %v: %v, with Flower %v", query, given[i], found, wanted)
			}
			if found && !selected {
				r.Fatalf("%q finds %v, but its query does not select it", query, given[i])
			}
		}
	})
}

// drawSearch draws a text that is often a search.
func drawSearch(r *rapid.T) string {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{
		"abc", "name:shop", "name:SHOP.add", "state:success", "STATE:Failure", "worker:w1@", "args:hello", `args:"lo wor"`, "kwargs:n=1",
		"kwargs: label = x", `kwargs:"label=some value"`, "kwargs:on=TRUE", "kwargs:none=", "kwargs:f=1.5", "kwargs:l=[1, 2]", `kwargs:"l=[1, 2]"`,
		"result:42!", "AND", "OR", "NOT", "and", "or", "(", ")", `"`, `\"`, `\\`, "-", "-abc", "x", "é☃ß", "STRASSE", "straße", "ss", "name:asse", "uuid:", "\u00a0", "\x1c", "\t",
		"name:", "foo:bar", "a:b:c", "hello", "world", "(abc OR", "def)", "success", "shop.add",
	}), 0, 9).Draw(r, "words")
	return strings.Join(words, rapid.SampledFrom([]string{" ", " ", "", "  "}).Draw(r, "between"))
}

// drawTasks draws tasks, for Umbel and for Flower.
func drawTasks(r *rapid.T) (tasks []state.Task, given []map[string]any) {
	pick := func(what string, values ...string) *string {
		s := rapid.SampledFrom(values).Draw(r, what)
		if s == "" {
			return nil
		}
		return &s
	}
	for i := range rapid.IntRange(0, 3).Draw(r, "tasks") {
		task := state.Task{
			ID: string(rune('a'+i)) + "bc-uuid", Name: pick("name", "", "shop.add", "SHOP.Fail", "Straße"),
			State:  rapid.SampledFrom([]state.State{"SUCCESS", "FAILURE", "PROGRESS"}).Draw(r, "state"),
			Worker: pick("worker", "", "w1@shop", "celery@W2"), Args: pick("args", "", "('hello world',)", "(1, 2)", "('é☃ß',)"),
			Kwargs: pick("kwargs", "", "{}", "{'n': 1}", "{'label': 'some value', 'on': True}", "{'none': None, 'f': 1.5}", "{'l': [1, 2]}",
				"{'label': 'x'}", "not a literal", "{'cut': 'off..."),
			Result: pick("result", "", "42!", "'abc'", "None"),
		}
		tasks = append(tasks, task)
		given = append(given, map[string]any{
			"uuid": task.ID, "name": task.Name, "state": string(task.State), "worker": task.Worker, "args": task.Args, "kwargs": task.Kwargs,
			"result": task.Result,
		})
	}
	return tasks, given
}

func FuzzSearch(f *testing.F) {
	for _, text := range []string{"", "abc", `name:"a b" OR (state:x AND kwargs:a=b)`, `\"abc`, "((((((abc", "☃ -"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := flower.SearchTree(text)
		if err != nil && !strings.HasSuffix(err.Error(), ".") {
			t.Errorf("%q: %v", text, err)
		}
		again, errAgain := flower.SearchTree("  " + text + "\n")
		if err == nil && (errAgain != nil || !cmp.Equal(tree, again)) {
			t.Errorf("%q with spaces around: %v %v, want %v", text, again, errAgain, tree)
		}
	})
}
