package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/simulate"
)

// TestEndToEndCaptureAndReplay records what a dashboard sees too, and replays it: both must end in one state.
func TestEndToEndCaptureAndReplay(t *testing.T) {
	t.Parallel()
	for name, newBroker := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			captureAndReplay(t, newBroker(t))
		})
	}
}

func captureAndReplay(t *testing.T, broker string) {
	t.Helper()
	d := start(t, nil, "serve", "--broker-url", broker)
	d.connected(t)
	cmd := command([]string{"CELERY_BROKER_URL=" + broker}, umbel, "capture")
	captured := newLines()
	cmd.Stdout = captured
	recorder := spawn(t, cmd)
	recorder.await(t, "capturing events")

	events := simulate.Typical(480, 1)
	bodies := slices.Concat(events[:240], [][]byte{nil}, simulate.Typical(4800, 24)[10:])
	bodies[240] = slices.Concat([]byte("["), bytes.Join(events[240:], []byte(",\n  ")), []byte("]")) // written by somebody else
	newBus(t, broker).publishAll(t, bodies)
	d.folded(t, 4800-240+480)
	var text string
	eventually(t, timeout, func() error {
		text, _ = captured.read()
		if got := strings.Count(text, "\n"); got != len(bodies) {
			return fmt.Errorf("%d lines, want one for each of %d messages", got, len(bodies))
		}
		return nil
	})
	if status := recorder.end(t, syscall.SIGINT); status != 0 {
		t.Errorf("capture ended with status %d, want 0", status)
	}

	status, out, complaints := once(t, nil, strings.NewReader(text), "replay", "-")
	if status != 0 || complaints != "" {
		t.Errorf("replay ended with status %d: %s", status, complaints)
	}
	var replayed struct {
		Tasks []task         `json:"tasks"`
		Stats map[string]int `json:"stats"`
	}
	if err := json.Unmarshal([]byte(out), &replayed); err != nil {
		t.Fatalf("decode replay: %v", err)
	}
	slices.Reverse(replayed.Tasks) // the API begins with the newest
	if diff := cmp.Diff(d.tasks(t), replayed.Tasks); diff != "" {
		t.Errorf("tasks (-served +replayed):\n%s", diff)
	}
	if want := map[string]int{"events": 5040, "tasks": 1600, "rejected": 0}; !cmp.Equal(want, replayed.Stats) {
		t.Errorf("stats = %v, want %v", replayed.Stats, want)
	}
}
