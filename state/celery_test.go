package state_test

import (
	"bufio"
	"encoding/json"
	"math"
	"os/exec"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/umbelhq/umbel/internal/eventgen"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/state"
)

// oracleTask is a task as Celery's own State has it. Not compared, since they cannot match: root and
// parent (objects that Celery caches on first access, «unknown» included; Umbel resolves root_id and parent_id
// when read), the time-zone shift of timestamps, which the oracle leaves out, and children of several parents,
// which Celery makes of events of one task that name different ones. A task is no child of itself, as Celery has it where a
// retry or a replacement names itself as its parent.
type oracleTask struct {
	Name, Args, Kwargs, Result, Exception, Traceback *string
	ETA, Expires, Exchange, Worker, Client           *string
	RoutingKey                                       *string `json:"routing_key"`
	RootID                                           *string `json:"root_id"`
	ParentID                                         *string `json:"parent_id"`
	Retries                                          *int64
	Runtime                                          *float64
	State                                            string
	Sent, Received, Started, Succeeded, Failed       *float64
	Retried, Revoked, Rejected, Timestamp            *float64
	Clock                                            int64
	Children                                         []string
	Extra                                            struct{ Queue *string }
}

// asOracle puts a task in Celery's terms.
func asOracle(t state.Task) oracleTask {
	slices.Sort(t.Children)
	return oracleTask{
		Name: t.Name, Args: t.Args, Kwargs: t.Kwargs, Result: t.Result, Exception: t.Exception, Traceback: t.Traceback,
		ETA: t.ETA, Expires: t.Expires, Exchange: t.Exchange, RoutingKey: t.RoutingKey, RootID: t.RootID, ParentID: t.ParentID,
		Retries: t.Retries, Runtime: t.RuntimeSeconds, State: string(t.State), Worker: t.Worker, Client: t.Client,
		Sent: seconds(t.SentAt), Received: seconds(t.ReceivedAt), Started: seconds(t.StartedAt), Succeeded: seconds(t.SucceededAt),
		Failed: seconds(t.FailedAt), Retried: seconds(t.RetriedAt), Revoked: seconds(t.RevokedAt), Rejected: seconds(t.RejectedAt),
		Timestamp: seconds(t.UpdatedAt), Clock: t.Stamp.Clock, Children: t.Children,
		Extra: struct{ Queue *string }{t.Queue},
	}
}

func seconds(micros int64) *float64 {
	if micros == 0 {
		return nil
	}
	return new(float64(micros) / 1e6)
}

// TestCeleryRulesEqualCelery folds random streams with Celery's own code and with the celery rules.
func TestCeleryRulesEqualCelery(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), testenv.Python(t), "testdata/oracle/celery_state.py", "--many")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReaderSize(out, 1<<20)
	compared := 0
	for seed := range uint64(testenv.Trials(1000)) {
		o := wild()
		o.SamePID = seed%2 == 0
		h := eventgen.New(seed, o)
		for name, stream := range map[string][]json.RawMessage{
			"in order": h.Events, "shuffled": eventgen.Shuffle(seed, h.Events), "wild": eventgen.Wild(seed, 30),
		} {
			for _, body := range stream {
				if _, err := in.Write(append(slices.Clone(body), '\n')); err != nil {
					t.Fatalf("write to the oracle: %v", err)
				}
			}
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Fatalf("write to the oracle: %v", err)
			}
			line, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatalf("read from the oracle: %v", err)
			}
			var want struct{ Tasks map[string]oracleTask }
			if err := json.Unmarshal(line, &want); err != nil {
				t.Fatalf("oracle said %s: %v", line, err)
			}
			for id, task := range want.Tasks {
				task.Children = slices.DeleteFunc(task.Children, func(child string) bool { return child == id })
				want.Tasks[id] = task
			}
			got := make(map[string]oracleTask)
			for id, task := range tasks(fold(t, state.Celery, stream)) {
				got[id] = asOracle(task)
				compared++
			}
			if diff := cmp.Diff(want.Tasks, got, cmpopts.EquateEmpty(), cmp.Comparer(near)); diff != "" {
				t.Fatalf("seed %d, %s: (-Celery +umbel):\n%s", seed, name, diff)
			}
		}
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("oracle: %v", err)
	}
	t.Logf("%d tasks are equal", compared)
}

// near equates times within a microsecond, to which Umbel keeps them.
func near(a, b float64) bool { return a == b || math.Abs(a-b) < 1.5e-6 }

// TestCeleryClocks has what Celery's receiver makes of clocks. It stops at null; here null is a missing clock.
func TestCeleryClocks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		clock string
		want  int64
	}{
		"as sent": {`"clock":7,`, 7}, "zero": {`"clock":0,`, 0}, "missing": {``, 1}, "null": {`"clock":null,`, 1}, "text": {`"clock":"7",`, 1},
		"float": {`"clock":7.9,`, 7},
	} {
		body := `{"type":"task-started","hostname":"w1","pid":7,` + tc.clock + `"timestamp":1790000000,"uuid":"a"}`
		c := fold(t, state.Celery, []json.RawMessage{json.RawMessage(body)})
		if got := mustTask(t, c, "a").Stamp.Clock; got != tc.want {
			t.Errorf("%s: clock %d, want %d", name, got, tc.want)
		}
	}
}
