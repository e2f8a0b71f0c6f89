package main_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
)

// installation is a virtual environment without Celery, in which the wheel of this platform is installed.
type installation struct {
	wheel   string
	program string // umbel
	python  string
}

var (
	installing sync.Mutex
	installed  *installation // TestMain removes its directory
	wheelDir   string
)

// install builds the wheel and installs it without a network, once for all tests.
func install(t *testing.T) installation {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	if installed != nil {
		return *installed
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		python = testenv.Python(t)
	}
	dist, venv := filepath.Join(wheelDir, "dist"), filepath.Join(wheelDir, "venv")
	execute(t, python, "../../python/build_wheel.py", "--version", "v1.2.3", "--out", dist, "native")
	execute(t, python, "-m", "venv", "--without-pip", venv)
	i := installation{program: filepath.Join(venv, "bin", "umbel"), python: filepath.Join(venv, "bin", "python")}
	execute(t, testenv.Python(t), "-m", "pip", "--python", i.python, "install", "--quiet", "--disable-pip-version-check",
		"--no-index", "--no-deps", "--find-links", dist, "umbel")
	found, err := filepath.Glob(filepath.Join(dist, "*.whl"))
	if err != nil || len(found) != 1 {
		t.Fatalf("wheels: %v, %v", found, err)
	}
	i.wheel = found[0]
	installed = &i
	return i
}

// execute runs a program to its end and returns what it wrote.
func execute(t *testing.T, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(c.Args, " "), err, complaint.Bytes())
	}
	return string(out)
}

// The wheel is as PyPI wants it, and the same bytes each time.
func TestEndToEndWheelIsValid(t *testing.T) {
	t.Parallel()
	i := install(t)
	tags := execute(t, testenv.Python(t), "testdata/wheel/check.py", i.wheel)
	if !strings.Contains(tags, "manylinux_2_17_") || !strings.Contains(tags, "musllinux_1_2_") {
		t.Errorf("the wheel is for %s, want manylinux and musllinux", tags)
	}
	again := t.TempDir()
	execute(t, i.python, "../../python/build_wheel.py", "--version", "v1.2.3", "--out", again, "native")
	first, err := os.ReadFile(i.wheel)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(filepath.Join(again, filepath.Base(i.wheel)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("a second build gave other bytes")
	}
	const most = 15 << 20
	if len(first) > most {
		t.Errorf("the wheel has %d bytes, want at most %d", len(first), most)
	}
}

func TestWheelHasAPythonVersion(t *testing.T) {
	t.Parallel()
	want := [][2]string{
		{"v0.1.0", "0.1.0"},
		{"v1.2.3-rc.1", "1.2.3rc1"},
		{"v1.2.3-beta2", "1.2.3b2"},
		{"v1.2.3-14-gabcdef0", "1.2.3.post14+gabcdef0"},
		{"v1.2.3-dirty", "1.2.3+dirty"},
		{"abcdef0", "0.0.0.dev0+gabcdef0"},
		{"abcdef0-dirty", "0.0.0.dev0+gabcdef0.dirty"},
		{"", "0.0.0.dev0"},
	}
	args := []string{"testdata/wheel/versions.py", "../../python"}
	var lines strings.Builder
	for _, v := range want {
		args = append(args, v[0])
		lines.WriteString(v[1] + "\n")
	}
	if diff := cmp.Diff(lines.String(), execute(t, testenv.Python(t), args...)); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

// What pip installs needs neither Celery nor any Python code.
func TestEndToEndWheelRunsTheDemo(t *testing.T) {
	t.Parallel()
	i := install(t)
	if got, want := execute(t, i.program, "--version"), "umbel 1.2.3\n"; got != want {
		t.Errorf("version = %q, want %q", got, want)
	}
	d := startProgram(t, command(nil, i.program, "demo"))
	eventually(t, timeout, func() error {
		if status, body := d.fetch(t, "readyz"); status != http.StatusOK {
			return fmt.Errorf("/readyz = %d %s", status, body)
		}
		return nil
	})
}
