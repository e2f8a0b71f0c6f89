package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
)

// timeout bounds every wait for something that should happen soon, on a machine that is busy.
const timeout = 3 * time.Minute

// umbel is the program under test. TestMain builds it.
var umbel string

func TestMain(m *testing.M) {
	status, err := buildAndRun(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

func buildAndRun(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "umbel-test-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	umbel, wheelDir = filepath.Join(dir, "umbel"), dir
	build := exec.Command("go", "build", "-o", umbel, ".")
	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("build umbel: %w\n%s", err, out)
	}
	return testbrowser.Main(m), nil
}

// process is a program that runs beside the test and ends with it. Its group goes with it.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has, and its output has been read
	lines  *lines        // of its standard error
}

// command prepares a program with env beside what the test itself has.
func command(env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(plainEnv(), env...)
	return cmd
}

// spawn starts cmd and keeps its standard error.
func spawn(tb testing.TB, cmd *exec.Cmd) *process {
	tb.Helper()
	p := &process{cmd: cmd, exited: make(chan struct{}), lines: newLines()}
	cmd.Stderr = p.lines
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // a child may outlive it with the same standard error
	if err := cmd.Start(); err != nil {
		tb.Fatalf("start %s: %v", cmd.Path, err)
	}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // the status is asked for where it matters
	}()
	tb.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.exited
		if tb.Failed() {
			tb.Logf("%s wrote:\n%s", strings.Join(cmd.Args, " "), p.lines.tail(60))
		}
	})
	return p
}

// plainEnv is the environment without what would configure Umbel or Celery. History is kept in memory.
func plainEnv() []string {
	env := []string{"UMBEL_DATA_DIR=:memory:"}
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "UMBEL_") && !strings.HasPrefix(e, "CELERY_") {
			env = append(env, e)
		}
	}
	return env
}

// signal reaches the whole group, unless the process has been waited for.
func (p *process) signal(s syscall.Signal) {
	select {
	case <-p.exited:
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, s)
	}
}

// end sends s and returns the exit status, -1 if a signal ended it.
func (p *process) end(tb testing.TB, s syscall.Signal) int {
	tb.Helper()
	p.signal(s)
	select {
	case <-p.exited:
	case <-time.After(timeout):
		tb.Fatalf("still running %v after %v", timeout, s)
	}
	return p.cmd.ProcessState.ExitCode()
}

// lines keeps what a process writes and tells who waits for a line.
type lines struct {
	mu   sync.Mutex
	text []byte
	more chan struct{} // closed at the next write
}

func newLines() *lines { return &lines{more: make(chan struct{})} }

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	close(l.more)
	l.more = make(chan struct{})
	return len(b), nil
}

func (l *lines) read() (string, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text), l.more
}

// tail returns the last n lines.
func (l *lines) tail(n int) string {
	text, _ := l.read()
	all := strings.SplitAfter(text, "\n")
	return strings.Join(all[max(0, len(all)-n-1):], "")
}

// await returns the first line that contains word.
func (p *process) await(tb testing.TB, word string) string {
	tb.Helper()
	late := time.After(timeout)
	for {
		text, more := p.lines.read()
		for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
			if strings.Contains(s.Text(), word) {
				return s.Text()
			}
		}
		select {
		case <-more:
		case <-p.exited:
			if last, _ := p.lines.read(); last == text {
				tb.Fatalf("%s ended without %q", p.cmd.Path, word)
			}
		case <-late:
			tb.Fatalf("%s did not say %q within %v", p.cmd.Path, word, timeout)
		}
	}
}

// dashboard is a running umbel.
type dashboard struct {
	*process
	url string // of its overview, with a slash at the end
}

// start runs umbel on a free port and waits until it listens.
func start(tb testing.TB, env []string, args ...string) *dashboard {
	tb.Helper()
	return startProgram(tb, command(env, umbel, args...))
}

// startProgram is start for a command that is umbel, or becomes it.
func startProgram(tb testing.TB, cmd *exec.Cmd) *dashboard {
	tb.Helper()
	cmd.Args = append(cmd.Args, "--listen", "127.0.0.1:0", "--log-format", "json")
	p := spawn(tb, cmd)
	var ready struct {
		URL string `json:"url"`
	}
	if err := json.Unmarshal([]byte(p.await(tb, "dashboard ready")), &ready); err != nil {
		tb.Fatalf("read log line: %v", err)
	}
	return &dashboard{process: p, url: ready.URL}
}

// fetch returns the status and the body of a page below the prefix. A busy machine answers 503: it asks again then, but for
// /readyz, whose answer that may be.
func (d *dashboard) fetch(tb testing.TB, path string) (int, []byte) {
	tb.Helper()
	var (
		status int
		body   []byte
	)
	eventually(tb, timeout, func() (err error) {
		if status, body, err = fetch(tb.Context(), d.url+path); err != nil {
			tb.Fatal(err)
		}
		if status == http.StatusServiceUnavailable && path != "readyz" {
			return fmt.Errorf("%s answered %d: %s", path, status, body)
		}
		return nil
	})
	return status, body
}

func fetch(ctx context.Context, url string) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("read %s: %w", url, err)
	}
	return res.StatusCode, body, nil
}

// api returns what the API answers for path, or the zero value with false if it does not know it.
func api[T any](tb testing.TB, d *dashboard, path string) (T, bool) {
	tb.Helper()
	var v T
	status, body := d.fetch(tb, "api/v1/"+path)
	if status == http.StatusNotFound {
		return v, false
	}
	if status != http.StatusOK {
		tb.Fatalf("%s answered %d: %s", path, status, body)
	}
	if err := json.Unmarshal(body, &v); err != nil {
		tb.Fatalf("decode %s: %v", path, err)
	}
	return v, true
}

// eventually asks check again and again until it returns nil.
func eventually(tb testing.TB, within time.Duration, check func() error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), within)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("after %v: %v", within, err)
		}
	}
}

// once runs umbel to its end and returns its exit status and what it wrote.
func once(tb testing.TB, env []string, stdin io.Reader, args ...string) (status int, stdout, stderr string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, umbel, args...)
	cmd.Env = append(plainEnv(), env...)
	var out, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &complaint
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		tb.Fatalf("run umbel %v: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), complaint.String()
}
