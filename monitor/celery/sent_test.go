package celery_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/celery"
)

func TestSentIsTheEventOfAClient(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 10, 0, 0, 250_000_000, time.FixedZone("", 3600))
	m := celery.Message{
		ID: "id", Name: "tasks.add", Args: json.RawMessage(`[1,"two",null]`), Kwargs: json.RawMessage(`{"a":true}`), RootID: "root",
		ParentID: "parent", Expires: now.Add(time.Hour), Retries: 2, Origin: "gen7@host",
	}
	p, err := m.Publishing(now)
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.SentEvent(p, "mail", 41, now, celery.JSON)
	if err != nil {
		t.Fatal(err)
	}
	if e.ContentType != "application/json" || e.ContentEncoding != "utf-8" || e.Persistent || e.Headers["hostname"] != "gen7@host" {
		t.Errorf("event is published as %+v", e)
	}
	var got map[string]any
	if err := json.Unmarshal(e.Body, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "task-sent", "hostname": "gen7@host", "utcoffset": -1.0, "pid": float64(os.Getpid()), "clock": 41.0, "timestamp": 1795251600.25,
		"uuid": "id", "root_id": "root", "parent_id": "parent", "name": "tasks.add", "args": "(1, 'two', None)", "kwargs": "{'a': True}",
		"retries": 2.0, "eta": nil, "expires": "2026-11-21T10:00:00.250000+00:00", "queue": "mail", "exchange": "", "routing_key": "mail",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got - want +\n%s", diff)
	}
}
