package api

import (
	"strconv"
	"time"

	"github.com/umbelhq/umbel/state"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/spreadsheet"
)

// csvField is one column of an exported table. Unknown values are empty.
type csvField struct {
	name  string
	value func(t *Task) string
}

// csvFields returns the CSV columns for cols, named as in JSON. The args column is followed by kwargs.
func csvFields(cols []lang.Field) []csvField {
	if len(cols) == 0 {
		cols = []lang.Field{
			lang.State, lang.Name, lang.ID, lang.Args, lang.Worker, lang.Queue, lang.Wait, lang.Run, lang.Retries, lang.Updated,
		}
	}
	known := allFields()
	var fields []csvField
	seen := map[string]bool{}
	add := func(f lang.Field) {
		if field, ok := known[f]; ok && !seen[field.name] {
			seen[field.name] = true
			fields = append(fields, field)
		}
	}
	for _, f := range cols {
		add(f)
		if f == lang.Args {
			add(lang.Kwargs)
		}
	}
	return fields
}

func allFields() map[lang.Field]csvField {
	return map[lang.Field]csvField{
		lang.ID:         {"id", func(t *Task) string { return spreadsheet.Text(t.ID) }},
		lang.Name:       {"name", func(t *Task) string { return optional(t.Name) }},
		lang.State:      {"state", func(t *Task) string { return spreadsheet.Text(t.State) }},
		lang.Args:       {"args", func(t *Task) string { return optional(t.Args) }},
		lang.Kwargs:     {"kwargs", func(t *Task) string { return optional(t.Kwargs) }},
		lang.Result:     {"result", func(t *Task) string { return optional(t.Result) }},
		lang.Exception:  {"exception", func(t *Task) string { return optional(t.Exception) }},
		lang.Traceback:  {"traceback", func(t *Task) string { return optional(t.Traceback) }},
		lang.Worker:     {"worker", func(t *Task) string { return optional(t.Worker) }},
		lang.Client:     {"client", func(t *Task) string { return optional(t.Client) }},
		lang.Queue:      {"queue", func(t *Task) string { return optional(t.Queue) }},
		lang.Exchange:   {"exchange", func(t *Task) string { return optional(t.Exchange) }},
		lang.RoutingKey: {"routing_key", func(t *Task) string { return optional(t.RoutingKey) }},
		lang.Root:       {"root_id", func(t *Task) string { return optional(t.RootID) }},
		lang.Parent:     {"parent_id", func(t *Task) string { return optional(t.ParentID) }},
		lang.Sent:       {"sent_at", func(t *Task) string { return t.SentAt.String() }},
		lang.Received:   {"received_at", func(t *Task) string { return t.ReceivedAt.String() }},
		lang.Started:    {"started_at", func(t *Task) string { return t.StartedAt.String() }},
		lang.Finished:   {"finished_at", func(t *Task) string { return finishedAt(t).String() }},
		lang.Updated:    {"updated_at", func(t *Task) string { return t.UpdatedAt.String() }},
		lang.ETA:        {"eta", func(t *Task) string { return optional(t.ETA) }},
		lang.Expires:    {"expires", func(t *Task) string { return optional(t.Expires) }},
		lang.Wait:       {"wait_seconds", func(t *Task) string { return seconds(t.WaitSeconds) }},
		lang.Run:        {"runtime_seconds", func(t *Task) string { return seconds(t.RuntimeSeconds) }},
		lang.Retries:    {"retries", func(t *Task) string { return digits(t.Retries) }},
		lang.Clock:      {"clock", func(t *Task) string { return digits(t.Clock) }},
	}
}

// finishedAt returns when the task finished (query.Finished).
func finishedAt(t *Task) Time {
	switch state.State(t.State) {
	case state.Success:
		return t.SucceededAt
	case state.Failure:
		return t.FailedAt
	case state.Revoked:
		return t.RevokedAt
	case state.Rejected:
		return t.RejectedAt
	default:
		return 0
	}
}

func optional(s *string) string {
	if s == nil {
		return ""
	}
	return spreadsheet.Text(*s)
}

func seconds(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'f', -1, 64)
}

func digits(n *Int) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}

// String returns the time as in JSON but without quotes, empty if unknown.
func (t Time) String() string {
	at := time.UnixMicro(int64(t)).UTC()
	if year := at.Year(); t == 0 || year < 0 || year > 9999 {
		return ""
	}
	return at.Format(timeLayout)
}
