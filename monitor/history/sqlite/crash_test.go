package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// childEnv makes the program of the tests write to the history in that directory until it is killed.
const childEnv = "UMBEL_TEST_HISTORY"

const (
	children  = 8
	mostALife = 20 // batches that a child writes at most before it waits for its end
)

// burst is what such children write, each from where the last one ended.
func burst() ([]history.Batch, error) { return makeBatches(children*mostALife*10, 5, 10) }

// child prints 0, then writes batches and prints the number of those that are on disk.
func child(dir string) error {
	ctx := context.Background()
	batches, err := burst()
	if err != nil {
		return err
	}
	if _, err := fmt.Println(0); err != nil {
		return err
	}
	d, err := sqlite.Open(ctx, sqlite.Options{Dir: dir})
	if err != nil {
		return err
	}
	_, journal, err := restored(d)
	if err != nil {
		return err
	}
	for n := len(journal); n < min(len(batches), len(journal)+mostALife); n++ {
		if _, err := d.Write(ctx, batches[n]); err != nil {
			return err
		}
		if _, err := fmt.Println(n + 1); err != nil {
			return err
		}
	}
	<-time.After(time.Hour) // until it is killed
	return nil
}

// writeUntilKilled lets a child write until life is over, counted from its first word, or until it has written
// batches, if that is not 0. It returns the number of batches that the child says are on disk.
func writeUntilKilled(t *testing.T, dir string, life time.Duration, batches int) (reported int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			over := time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
			defer over.Stop()
			continue
		}
		if reported, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		if n == batches {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("child ended by itself: %v", err)
	}
	return reported
}

func TestNothingIsLostWhenTheProcessIsKilled(t *testing.T) {
	t.Parallel()
	batches, err := burst()
	if err != nil {
		t.Fatal(err)
	}
	dir, reported := t.TempDir(), 0
	rng := rand.New(rand.NewPCG(11, 20))
	for range children / 2 {
		// Some die before they write, or while they make the tables.
		reported = max(reported, writeUntilKilled(t, dir, time.Duration(rng.IntN(150))*time.Millisecond, 0))
		reported = max(reported, writeUntilKilled(t, dir, 3*time.Minute, 1+rng.IntN(mostALife)))
	}

	d := open(t, dir)
	defer closed(t, d)
	tasks, journal, err := restored(d)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(journal); n < reported || n > reported+1 {
		t.Fatalf("%d batches are there, want %d, and the next at most", n, reported)
	}
	t.Logf("killed %d writers: %d batches reported, %d there", children, reported, len(journal))
	wantTasks, wantJournal := written(batches[:len(journal)])
	if diff := cmp.Diff(wantJournal, journal); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantTasks, tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
}
