package command_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/state"
)

// Once it is sent, a task's secrets are nowhere in the outbox, and a retry takes no asterisks for them.
func TestSentSecretsAreNotKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, adders()...)
	o := command.TaskRequest{
		Name: "tasks.add", Queue: "mixed", Args: json.RawMessage(`[1,{"password":"hunterzwei"}]`), Kwargs: json.RawMessage(`{"api_key":"hunterzwei"}`),
	}
	r, err := b.Publish(t.Context(), by, o)
	if err != nil {
		t.Fatal(err)
	}
	c := b.settled(t, r)[0]
	if strings.Contains(string(c.Payload), "hunterzwei") || !strings.Contains(string(c.Payload), `"password":"********"`) {
		t.Errorf("the outbox keeps %s", c.Payload)
	}
	if m := b.waiting(t, "mixed"); len(m) != 1 || string(m[0].Kwargs) != `{"api_key":"hunterzwei"}` {
		t.Errorf("sent %+v, want the key as it is", m)
	}
	b.task(c.TaskID, state.TaskFailed, func(e *state.Event) {
		if e.Args != "" {
			e.Args, e.Kwargs = "(1, {'password': '********'})", "{'api_key': '********'}"
		}
	})
	again, _, err := b.Retry(t.Context(), c.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(again.Args)+string(again.Kwargs), "***") {
		t.Errorf("a retry has %s %s", again.Args, again.Kwargs)
	}
}

func TestRedactedRecords(t *testing.T) {
	t.Parallel()
	x, err := redact.New(redact.Options{Rules: []string{"task pay.* arg 1", "task all.* args", "text s3cret"}})
	if err != nil {
		t.Fatal(err)
	}
	const shown = "********"
	for detail, want := range map[string]string{
		`{}`: `{}`, ``: ``, `plain s3cret`: `plain ` + shown,
		`{"detail":{"name":"pay.card","args":[1,2],"kwargs":{"token":"x"}}}`: `{"detail":{"args":[1,"` + shown + `"],"kwargs":{"token":"` + shown + `"},"name":"pay.card"}}`,
		`{"detail":{"name":"pay.card","args":[1],"changes":{"args[0]":{"from":1,"to":2},"args[1]":{"from":3,"to":4}}}}`: `{"detail":{"args":[1],` +
			`"changes":{"args[0]":{"from":1,"to":2},"args[1]":"` + shown + `"},"name":"pay.card"}}`,
		`{"detail":{"name":"all.x","args":[1],"changes":{"args[9]":{"from":1}}}}`: `{"detail":{"args":"` + shown + `","changes":{"args[9]":"` + shown + `"},"name":"all.x"}}`,
		`{"detail":{"name":"other","args":[1,2]}}`:                                `{"detail":{"name":"other","args":[1,2]}}`,
		`{"detail":["s3cret"]}`:                                                   `{"detail":["` + shown + `"]}`,
	} {
		if _, got := command.RedactedAudit(x, "", detail); got != want {
			t.Errorf("%s becomes %s, want %s", detail, got, want)
		}
	}
	for payload, want := range map[string]string{
		`{"queue":"a"}`: `{"queue":"a"}`, `{"method":"x","arguments":{"password":"y"}}`: `{"arguments":{"password":"` + shown + `"},"method":"x"}`, `bad`: `null`,
	} {
		if got := command.Redacted(x, "control", []byte(payload)); string(got) != want {
			t.Errorf("%s becomes %s, want %s", payload, got, want)
		}
	}
}
