package main_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// An app whose events, tasks and results are in MessagePack or YAML is watched, and its tasks are retried and published, as
// with JSON.
func TestEndToEndSerializers(t *testing.T) {
	t.Parallel()
	for name, own := range brokers {
		for _, serializer := range []string{"msgpack", "yaml"} {
			t.Run(name+"/"+serializer, func(t *testing.T) {
				t.Parallel()
				broker := own(t)
				d := start(t, nil, "serve", "--broker-url", broker)
				d.connected(t)
				c := newClusterWith(t, broker, "SERIALIZER="+serializer)
				c.work(t, "w1@test", "celery", "-P", "solo", "-E")
				seen := d.inState(t, c.call(t, "add", 2, 3), "SUCCESS")
				if seen.Worker != "w1@test" || seen.Result != "5" {
					t.Errorf("task ran on %q with result %q, want w1@test and 5", seen.Worker, seen.Result)
				}
				ping := d.post(t, "control?wait=20s", `{"method": "ping", "workers": ["w1@test"]}`)
				if got := ping.Commands[0]; got.State != "done" || len(got.Answers) != 1 || got.Answers[0].Text != "pong" {
					t.Errorf("ping is %s, with replies %v", got.State, got.Answers)
				}

				// A message that waits is read, and retried as it was written.
				waiting := c.do(t, clientCall{Call: "add", Args: []any{4, 5}, Options: map[string]any{"queue": "later"}})[0]
				eventually(t, timeout, func() error {
					got, ok := api[struct {
						Source  string `json:"source"`
						Request struct {
							Args       []int  `json:"args"`
							Serializer string `json:"serializer"`
						} `json:"request"`
					}](t, d, "retry/"+waiting)
					if !ok || name == "Redis" && got.Source != "broker" || got.Request.Serializer != serializer || fmt.Sprint(got.Request.Args) != "[4 5]" {
						return fmt.Errorf("retry of a waiting task: %+v", got)
					}
					return nil
				})
				again := d.post(t, "retry/"+waiting, `{"queue": "celery", "force": true}`)
				if got := d.inState(t, again.Commands[0].TaskID, "SUCCESS"); got.Result != "9" {
					t.Errorf("the retry's result is %q, want 9", got.Result)
				}
				sent := d.post(t, "publish", `{"name": "tasks.add", "args": ["é", "\ud83d\ude00"], "serializer": "`+serializer+`", "force": true}`) // stats cannot be written in YAML: its worker may miss the next request
				if got := d.inState(t, sent.Commands[0].TaskID, "SUCCESS"); !strings.Contains(got.Result, "é") {
					t.Errorf("the published task's result is %q", got.Result)
				}
				for cause, n := range d.overview(t).Health.Rejected {
					t.Errorf("%d rejected: %s", n, cause)
				}
			})
		}
	}
}

// Events in pickle are counted and named.
func TestEndToEndEventsInPickle(t *testing.T) {
	t.Parallel()
	broker := brokers["RabbitMQ"](t)
	d := start(t, nil, "serve", "--broker-url", broker)
	d.connected(t)
	c := newClusterWith(t, broker, "SERIALIZER=pickle")
	c.work(t, "w1@test", "celery", "-P", "solo", "-E")
	eventually(t, timeout, func() error {
		if d.overview(t).Health.Rejected["pickle"] == 0 {
			return errors.New("no event in pickle was counted")
		}
		return nil
	})
}
