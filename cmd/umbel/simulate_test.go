package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEndToEndAWorkerJoinsASimulatedCluster runs a real worker beside simulated ones.
func TestEndToEndAWorkerJoinsASimulatedCluster(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "umbel-simulate")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../umbel-simulate").CombinedOutput(); err != nil {
		t.Fatalf("build umbel-simulate: %v\n%s", err, out)
	}
	line := spawn(t, command(nil, program, "-listen", "127.0.0.1:0")).await(t, "broker ready")
	url := regexp.MustCompile(`url=(redis://\S+)`).FindStringSubmatch(line)[1]
	d := start(t, nil, "serve", "--broker-url", url)
	c := newCluster(t, url)
	c.work(t, "real@test", "celery", "-P", "solo", "-E")
	if got := d.inState(t, c.call(t, "add", 2, 3), "SUCCESS"); got.Worker != "real@test" || got.Result != "5" {
		t.Errorf("task ran on %q with result %q, want real@test and 5", got.Worker, got.Result)
	}
	d.worker(t, "celery@web-1", status("online"))

	ping := d.post(t, "control?wait=20s", `{"method": "ping", "workers": ["real@test", "celery@web-1", "mail@jobs-2"]}`)
	for _, command := range ping.Commands {
		if command.State != "done" || len(command.Answers) != 1 || command.Answers[0].Text != "pong" {
			t.Errorf("ping of %s is %s, answered with %v", command.Target, command.State, command.Answers)
		}
	}
	for name, queue := range map[string]string{"tasks.add": "celery", "mail.send_receipt": "mail", "fraud.score": "shop"} {
		sent := d.post(t, "publish", `{"name": "`+name+`", "args": [1, 2], "queue": "`+queue+`"}`)
		d.until(t, sent.Commands[0].TaskID, func(got task) error { // one task in a hundred of the simulation fails
			if got.State != "SUCCESS" && (got.State != "FAILURE" || name == "tasks.add") {
				return fmt.Errorf("task %s is %s, want SUCCESS", got.ID, got.State)
			}
			return nil
		})
	}
}

// receipt is the response to a request for commands.
type receipt struct {
	Commands []struct {
		State   string `json:"state"`
		Target  string `json:"target"`
		TaskID  string `json:"task_id"`
		Answers []struct {
			Text string `json:"text"`
		} `json:"replies"`
	} `json:"commands"`
}

// post requests commands.
func (d *dashboard) post(tb testing.TB, path, body string) receipt {
	tb.Helper()
	q, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, d.url+"api/v1/"+path, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		tb.Fatalf("post %s: %v", path, err)
	}
	defer func() { _ = res.Body.Close() }()
	var r receipt
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil || res.StatusCode != http.StatusAccepted || len(r.Commands) == 0 {
		tb.Fatalf("post %s: status %d, error %v, %+v", path, res.StatusCode, err, r)
	}
	return r
}
