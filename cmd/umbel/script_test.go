package main_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", filepath.Dir(umbel)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home")) // histories are kept there
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"refuses": refuses, "history": fillHistory, "requested": requested},
	})
}

// refuses is the command "refuses STATUS ARGUMENT…": umbel ends with the status, and has written nothing
// but one line on standard error, which the script can look into.
func refuses(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: refuses STATUS ARGUMENT…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	var exit *exec.ExitError
	if err := ts.Exec("umbel", args[1:]...); !errors.As(err, &exit) || exit.ExitCode() != want {
		ts.Fatalf("umbel %s: %v, want exit status %d", strings.Join(args[1:], " "), err, want)
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("standard output is %q, want nothing", out)
	}
	line := ts.ReadFile("stderr")
	if !strings.HasPrefix(line, "umbel: ") || strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "\n") {
		ts.Fatalf("standard error is %q, want one line that begins with umbel:", line)
	}
}
