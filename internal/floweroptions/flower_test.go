package floweroptions_test

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/floweroptions"
	"github.com/umbelhq/umbel/internal/testenv"
)

// Flower itself reads the same from the same environment, file and command line.
func TestFlowerReadsTheSame(t *testing.T) {
	t.Parallel()
	python := testenv.Flower(t)
	script, err := filepath.Abs("testdata/options.py")
	if err != nil {
		t.Fatal(err)
	}
	defaults := flowerReads(t, python, script, t.TempDir(), nil, nil)
	for name, test := range map[string]struct {
		environ []string
		config  string
		args    []string
	}{
		"nothing":      {},
		"environment":  {environ: []string{"FLOWER_PORT=2", "FLOWER_DEBUG=yes", "FLOWER_BASIC_AUTH=a:b,c:d", "FLOWER_INSPECT_TIMEOUT=1e3", "FLOWER_NOBODY=1"}},
		"file":         {config: "port = 3\ndebug = True\nbasic_auth = ['a:b']\nurl_prefix = 'x' 'y'\nother = 1\nmax_tasks = int('5')\n"},
		"command line": {args: []string{"--port=4", "--debug", "--url-prefix=ops", "--basic_auth=a:b,c:d", "--task_runtime_metric_buckets=1,inf"}},
		"all": {
			environ: []string{"FLOWER_PORT=2", "FLOWER_MAX_TASKS=20", "FLOWER_MAX_WORKERS=200", "FLOWER_READ_ONLY=1"},
			config:  "port = 3\nmax_tasks = 30\nread_only = False\n", args: []string{"--port=4"},
		},
		"false":            {args: []string{"--auto_refresh=False", "--enable-events=0", "--persistent=f", "--natural_time=true"}},
		"unknown":          {args: []string{"--nobody=1", "--prot=3", "--port=7"}},
		"one hyphen":       {args: []string{"-port=8"}},
		"repeated":         {args: []string{"--port=1", "--port=9"}},
		"text for numbers": {config: "port = '12'\ninspect_timeout = '5'\n"},
		"several lines":    {config: "import os\nbasic_auth = [\n  os.environ.get('NOBODY', 'a:b'),  # one\n  'c:d',\n]\ntasks_columns = (\n 'name,'\n 'uuid')\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			f := files{}
			if test.config != "" {
				f["flowerconfig.py"] = test.config
				if err := os.WriteFile(filepath.Join(dir, "flowerconfig.py"), []byte(test.config), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			flower := flowerReads(t, python, script, dir, test.environ, test.args)
			s, err := floweroptions.Read(floweroptions.Input{Environ: test.environ, Args: append([]string{}, test.args...), ReadFile: f.read})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range floweroptions.Options() {
				if x, ok := s.Get(o.Name); ok && !o.Variable {
					if diff := cmp.Diff(flower[o.Name], asJSON(t, x.Value)); diff != "" {
						t.Errorf("%s (-Flower +Umbel):\n%s", o.Name, diff)
					}
				}
			}
			for option, v := range flower {
				if x, ok := s.Get(option); !ok && v != "" && v != nil {
					if d := defaults[option]; !cmp.Equal(d, v) && option != "cookie_secret" {
						t.Errorf("%s is %v in Flower, and %v here", option, v, x.Value)
					}
				}
			}
		})
	}
}

// flowerReads returns the options that Flower reads.
func flowerReads(t *testing.T, python, script, dir string, environ, args []string) map[string]any {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, append([]string{script}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = dir, append([]string{"PATH=" + os.Getenv("PATH")}, environ...), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("Flower: %v", err)
	}
	var all map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(out), "Infinity", `"inf"`)), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// asJSON returns v as it is read from JSON in which infinities are text.
func asJSON(t *testing.T, v any) any {
	t.Helper()
	if list, ok := v.([]float64); ok {
		texts := []any{}
		for _, f := range list {
			if math.IsInf(f, 0) {
				texts = append(texts, "inf")
				continue
			}
			texts = append(texts, f)
		}
		v = texts
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
