package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

func (shopOutbox) Stats(context.Context) (outboxwatch.Stats, error) {
	return outboxwatch.Stats{}, nil
}

// Rows returns one row. Of tasks named away, the database is away.
func (shopOutbox) Rows(_ context.Context, r outboxwatch.RowRequest) (page outboxwatch.RowPage, err error) {
	at := time.UnixMicro(start)
	switch {
	case r.Name == "away":
		return page, errAway
	case r.After != "":
		return page, &outboxwatch.Error{Fault: outboxwatch.FaultOther, Err: outboxwatch.ErrCursor}
	}
	page.Rows = []outboxwatch.Row{{
		ID: 7, TaskID: taskID, TaskName: "shop.pay", State: outboxwatch.Due, CreatedAt: at, UpdatedAt: at, RetryAfter: at, Retries: 2, SchemaVersion: 1,
		Payload: outboxwatch.Payload{
			Args: json.RawMessage(`[1]`), Kwargs: json.RawMessage(`{"password":"s3cret"}`), RedactedArgs: true,
			Options: json.RawMessage(`{"link":[{"task":"shop.mail","args":["s3cret"]}],"queue":"mail"}`),
		},
	}}
	page.Next = "~7"
	return page, nil
}

// ByTask returns the row of the task that has one.
func (o shopOutbox) ByTask(ctx context.Context, ids []string) ([]outboxwatch.Row, []outboxwatch.DeadLetter, error) {
	page, err := o.Rows(ctx, outboxwatch.RowRequest{})
	if !slices.Contains(ids, page.Rows[0].TaskID) {
		page.Rows = nil
	}
	return page.Rows, nil, err
}

// awayOutbox is one whose database is away.
type awayOutbox struct{ shopOutbox }

var errAway = &outboxwatch.Error{Fault: outboxwatch.FaultAway, Text: "The database db cannot be reached."}

func (awayOutbox) Rows(context.Context, outboxwatch.RowRequest) (page outboxwatch.RowPage, err error) {
	return page, errAway
}

func (awayOutbox) ByTask(context.Context, []string) ([]outboxwatch.Row, []outboxwatch.DeadLetter, error) {
	return nil, nil, errAway
}

func (awayOutbox) DeadLetters(context.Context, outboxwatch.DeadLetterRequest) (page outboxwatch.DeadLetterPage, err error) {
	return page, errAway
}

func TestRowsOfAppOutbox(t *testing.T) {
	t.Parallel()
	h := newAPI(options(t, newBackend(t)))
	got := decode(t, get(t, h, "/app-outboxes/shop/rows").Body.String())
	at := "2026-11-21T10:00:00.000000Z"
	if items, _ := got["items"].([]any); len(items) == 1 {
		at = items[0].(map[string]any)["created_at"].(string)
	}
	want := map[string]any{"next": "~7", "prev": nil, "total": nil, "items": []any{map[string]any{
		"id": json.Number("7"), "task_id": taskID, "name": "shop.pay", "state": "due", "created_at": at, "updated_at": at, "retry_after": at, "retries": json.Number("2"),
		"schema_version": json.Number("1"), "args": []any{json.Number("1")}, "kwargs": map[string]any{"password": "********"}, "redacted": true,
		"options": map[string]any{"queue": "mail", "link": []any{map[string]any{"task": "shop.mail", "args": "********", "kwargs": "********", "options": "********"}}},
	}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	for path, status := range map[string]int{
		"/app-outboxes/shop/rows?name=away":  http.StatusServiceUnavailable,
		"/app-outboxes/shop/rows?cursor=x":   http.StatusBadRequest,
		"/app-outboxes/none/dead-letters":    http.StatusNotFound,
		"/app-outboxes/shop/rows?state=dead": http.StatusBadRequest,
		"/app-outboxes/shop/dead-letters":    http.StatusOK,
		"/app-outboxes":                      http.StatusOK,
	} {
		if got := get(t, h, path).Code; got != status {
			t.Errorf("GET %s = %d, want %d", path, got, status)
		}
	}
}

func TestTaskTellsItsWayThroughAnOutbox(t *testing.T) {
	t.Parallel()
	h := newAPI(options(t, newBackend(t)))
	got := decode(t, get(t, h, "/tasks/"+taskID+"/outbox").Body.String())
	if got["name"] != "shop" || got["stage"] != "due" || got["retries"] != json.Number("2") || got["resent"] != false {
		t.Errorf("outbox of a task: %v", got)
	}
	if code := get(t, h, "/tasks/nope/outbox").Code; code != http.StatusNotFound {
		t.Errorf("outbox of a task in none: status %d, want 404", code)
	}
}
