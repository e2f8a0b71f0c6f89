package floweroptions_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/floweroptions"
)

// files is what can be read, by name.
type files map[string]string

func (f files) read(name string) ([]byte, error) {
	if text, ok := f[name]; ok {
		return []byte(text), nil
	}
	return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
}

func read(environ []string, config, args string) (*floweroptions.Settings, error) {
	f := files{}
	if config != "" {
		f["flowerconfig.py"] = config
	}
	return floweroptions.Read(floweroptions.Input{Environ: environ, Args: append([]string{}, strings.Fields(args)...), ReadFile: f.read})
}

// value returns the value of an option, nil if it is not set.
func value(s *floweroptions.Settings, name string) any {
	x, _ := s.Get(name)
	return x.Value
}

func TestCommandLineBeatsFileBeatsEnvironment(t *testing.T) {
	t.Parallel()
	const file = "port = 3\n"
	for name, test := range map[string]struct {
		environ      []string
		config, args string
		want         any
	}{
		"nothing":                    {want: nil},
		"environment":                {environ: []string{"FLOWER_PORT=2"}, want: 2},
		"file over environment":      {environ: []string{"FLOWER_PORT=2"}, config: file, want: 3},
		"command line over file":     {environ: []string{"FLOWER_PORT=2"}, config: file, args: "--port=4", want: 4},
		"the last on a command line": {args: "--port=4 --port=5", want: 5},
		"the last in a file":         {config: "port = 3\nport = 6", want: 6},
		"None in a file":             {environ: []string{"FLOWER_PORT=2"}, config: "port = None", want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := read(test.environ, test.config, test.args)
			if err != nil {
				t.Fatal(err)
			}
			if got := value(s, "port"); got != test.want {
				t.Errorf("port = %v, want %v", got, test.want)
			}
		})
	}
}

func TestValuesOfCommandLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		name  string
		value any
	}{
		"--url-prefix=ops":                      {"url_prefix", "ops"},
		"--url_prefix=ops":                      {"url_prefix", "ops"},
		"-url_prefix=ops":                       {"url_prefix", "ops"},
		"--url_prefix ops":                      {"url_prefix", "ops"},
		"--debug":                               {"debug", true},
		"--debug=False":                         {"debug", false},
		"--debug=f":                             {"debug", false},
		"--enable-events=0":                     {"enable_events", false},
		"--basic-auth=a:b,c:d":                  {"basic_auth", []string{"a:b", "c:d"}},
		"--inspect_timeout=1e4":                 {"inspect_timeout", 1e4},
		"--task_runtime_metric_buckets=1,5,inf": {"task_runtime_metric_buckets", []float64{1, 5, math.Inf(1)}},
		"flower --port=0":                       {"port", 0},
		"-A proj --broker=redis:// flower -q --port=1": {"port", 1},
	} {
		s, err := read(nil, "", args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if got := value(s, want.name); !cmp.Equal(got, want.value) {
			t.Errorf("%s: %s = %#v, want %#v", args, want.name, got, want.value)
		}
	}
}

func TestOptionsOfCelery(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"-A proj -b redis://h/1 --result-backend redis://h/2 -q flower",
		"--app=proj --broker=redis://h/1 --result-backend=redis://h/2 --quiet flower",
		"-Aproj -bredis://h/1 flower --result-backend=redis://h/2 -q",
		"flower -A=proj -b redis://h/1 --result-backend redis://h/2 -q",
	} {
		s, err := read(nil, "", args)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		got := []any{s.App, s.Broker, s.ResultBackend, s.Quiet, len(s.Warnings)}
		if want := []any{"proj", "redis://h/1", "redis://h/2", true, 0}; !cmp.Equal(got, want) {
			t.Errorf("%s: %v, want %v; %q", args, got, want, s.Warnings)
		}
	}
}

func TestSplitFindsTheCommand(t *testing.T) {
	t.Parallel()
	takes := func(flag string) bool { return flag == "--log-level" }
	for args, want := range map[string]int{
		"flower":                            0,
		"-A proj flower":                    2,
		"-Aproj -b=redis:// flower":         2,
		"--log-level debug flower":          2,
		"--broker=x -q flower serve":        2,
		"serve --prefix flower":             -1,
		"--log-level flower":                -1,
		"-A flower":                         -1,
		"":                                  -1,
		"tasks flower":                      -1,
		"-- flower":                         -1,
		"--broker redis:// flower --port=1": 2,
	} {
		if got := floweroptions.Split(strings.Fields(args), takes); got != want {
			t.Errorf("Split(%q) = %d, want %d", args, got, want)
		}
	}
}

func TestInvalidValues(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ      []string
		config, args string
		want         string
	}{
		"number on the command line": {args: "--port=http", want: "--port must be a whole number"},
		"no value":                   {args: "--port", want: "--port needs a value"},
		"no value before another":    {args: "--url_prefix --debug", want: "--url_prefix needs a value"},
		"word for a bool":            {args: "--debug=perhaps", want: "--debug must be true or false"},
		"environment":                {environ: []string{"FLOWER_DEBUG=perhaps"}, want: "$FLOWER_DEBUG: must be true or false"},
		"function":                   {args: "--format_task=f", want: "--format_task is a function"},
		"file named":                 {args: "--conf=other.py", want: "--conf: open other.py"},
		"type in a file":             {config: "\nport = 'x'", want: "flowerconfig.py line 2: port must be a whole number"},
		"list in a file":             {config: "basic_auth = [1]", want: "line 1: basic_auth must be a list of strings"},
		"call in a file":             {config: "port = 1\nbasic_auth = load()", want: "line 2: basic_auth: calls load"},
		"operator in a file":         {config: "port = 5000 + 5", want: "line 1: port: must be a literal, without operators"},
		"unknown name":               {config: "port = PORT", want: "line 1: port: refers to PORT"},
		"missing variable":           {config: "import os\nport = os.environ['NO']", want: "line 2: port: needs the variable NO"},
		"statement":                  {config: "if True:\n  port = 1", want: "line 1: if True: is not read"},
		"call as a statement":        {config: "setup()", want: "line 1: setup() is not read"},
		"f-string":                   {config: "url_prefix = f'{x}'", want: "has an f-string"},
		"open bracket":               {config: "basic_auth = ['a:b'", want: "has a bracket that is not closed"},
		"open string":                {config: "url_prefix = 'a", want: "has a string that does not end"},
		"deep":                       {config: "basic_auth = " + strings.Repeat("[", 100), want: "nested too deep"},
		"long":                       {config: strings.Repeat("#\n", 600_000), want: "longer than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := read(test.environ, test.config, test.args)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestConfigurationFile(t *testing.T) {
	t.Parallel()
	const file = "# -*- coding: utf-8 -*-\r\n" + `"""Flower's options.

It has lines."""
import os
from os import environ, getenv
from proj.helpers import something

_user = 'me'
PASSWORD = os.environ.get("SECRET", "none")
address: str = "0.0.0.0"  # everywhere
port = int(os.environ.get('PORT', 5555))
basic_auth = [
    'me:' "s3cret",  # joined
    r'you:a\b', _user,
    PASSWORD,
]
inspect_timeout = 1_000
max_tasks = 0x10
task_runtime_metric_buckets = (.1, 1, float('inf'),)
url_prefix = ('ops')
cookie_secret = '\x41\u00e9\t"'
persistent = True; natural_time = False
db = \
  '''a
b'''
unknown = {'a': [1, -2.5], 'b': {}, "c": {1, 2}}
broker_api = os.getenv('NOBODY')

def format_task(task):
    task.args = None

    # a comment
    return task

read_only = True
`
	s, err := read([]string{"SECRET=hidden:x"}, file, "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"address": "0.0.0.0", "port": 5555, "basic_auth": []string{"me:s3cret", `you:a\b`, "me", "hidden:x"},
		"inspect_timeout": 1000.0, "max_tasks": 16, "task_runtime_metric_buckets": []float64{.1, 1, math.Inf(1)},
		"url_prefix": "ops", "cookie_secret": "Aé\t\"", "persistent": true, "natural_time": false, "db": "a\nb",
		"broker_api": nil, "format_task": true, "read_only": true,
	} {
		if got := value(s, name); !cmp.Equal(got, want) {
			t.Errorf("%s = %#v, want %#v", name, got, want)
		}
	}
	if x, _ := s.Get("read_only"); x.Origin != "flowerconfig.py line 36: read_only" {
		t.Errorf("origin %q", x.Origin)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		environ      []string
		config, args string
		want         []string
	}{
		"service of Kubernetes": {
			environ: []string{"FLOWER_PORT=tcp://10.0.0.1:5555", "FLOWER_PORT_5555_TCP_PROTO=tcp", "FLOWER_SERVICE_HOST=10.0.0.1", "FLOWER_SERVICE_PORT=5555"},
			want:    []string{"$FLOWER_PORT=tcp://10.0.0.1:5555 is ignored: Kubernetes sets it for a service named flower"},
		},
		"misspelt": {args: "--prot=1", want: []string{"--prot is ignored, as Flower does: there is no such option: is it --port?"}},
		"unknown":  {args: "--zzzzzz", want: []string{"--zzzzzz is ignored, as Flower does: there is no such option"}},
		"word":     {args: "flower now", want: []string{"now is ignored: write values as --name=value"}},
		"no effect, once": {
			environ: []string{"FLOWER_NATURAL_TIME=1"}, config: "natural_time = True", args: "--natural-time",
			want: []string{"--natural_time is ignored: pages show relative times, and exact ones beside them."},
		},
		"name in a file": {config: "base_auth = 'a:b'\n", want: []string{"flowerconfig.py line 1: base_auth is no option of Flower: is it basic_auth?"}},
		"others":         {environ: []string{"FLOWERS=1", "FLOWER_=x", "FLOWER_X=y", "HOME=/"}, want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := read(test.environ, test.config, test.args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, s.Warnings); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionsOfOthersPassThrough(t *testing.T) {
	t.Parallel()
	s, err := floweroptions.Read(floweroptions.Input{
		Args: strings.Fields("--data-dir /x --peers --keep=3d --port=1"), ReadFile: files{}.read,
		Other: func(name string) (takesValue, ok bool) {
			return name == "data-dir", slices.Contains([]string{"data-dir", "peers", "keep"}, name)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"--data-dir", "/x", "--peers", "--keep=3d"}; !slices.Equal(s.Rest, want) {
		t.Errorf("rest %q, want %q", s.Rest, want)
	}
}

// Whatever a file holds, it is read or refused with the line that is wrong.
func TestAnyFileIsReadOrRefused(t *testing.T) {
	t.Parallel()
	words := []string{"port", "=", " ", "\n", "'", `"""`, "[", "]", "(", ")", "{", "}", ",", ":", "#", "\\", "\\\n", "def", "os.environ.get", "1", "-", ".", "e", "True", "\t", ";", "é"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "words"), "")
		checkFile(t, text)
	})
}

// checkFile fails if a file is refused without its line.
func checkFile(t fataler, text string) {
	_, err := read(nil, text, "")
	if err != nil && !strings.Contains(err.Error(), " line ") {
		t.Fatalf("%q: error without a line: %v", text, err)
	}
}

type fataler interface {
	Fatalf(format string, args ...any)
}

func FuzzFile(f *testing.F) {
	f.Add("port = 1\n")
	f.Add("import os\nbasic_auth = [os.environ.get('A', \"\"), '''x''']\ndef f():\n  pass\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 1<<20 && text != "" {
			checkFile(t, text)
		}
	})
}

func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	broken := errors.New("permission denied")
	_, err := floweroptions.Read(floweroptions.Input{Args: []string{}, ReadFile: func(string) ([]byte, error) { return nil, broken }})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
