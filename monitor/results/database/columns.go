package database

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/results"
)

// columns is a row by the names of its columns. What a table does not have is nil, like NULL.
type columns map[string]any

// celery reads a row of Celery's own table. Its result is a pickle whatever the serializer, of what yaml and msgpack have
// written as text or bytes; arguments are as the serializer writes them.
func (c columns) celery(taskID string) results.Result {
	r := results.Result{
		TaskID: taskID, Status: c.text("status"), Traceback: c.text("traceback"), Name: c.text("name"),
		Worker: c.text("worker"), Queue: c.text("queue"), Args: c.json("args"), Kwargs: c.json("kwargs"),
	}
	if n, ok := c["retries"].(int64); ok {
		r.Retries = &n
	}
	r.DoneAt, r.NaiveTime = c.time("date_done")
	if b := c.bytes("result"); len(b) > 0 {
		r.Decode(b, "")
	}
	return r
}

// django reads a row of django-celery-results. Its result is as the content type says, its arguments are Python's repr, which
// is shown elsewhere.
func (c columns) django(taskID string) results.Result {
	r := results.Result{
		TaskID: taskID, Status: c.text("status"), Traceback: c.text("traceback"), Name: c.text("task_name"),
		Worker: c.text("worker"),
	}
	r.DoneAt, r.NaiveTime = c.time("date_done")
	b := c.bytes("result")
	if c.text("content_encoding") == "binary" {
		if raw, err := base64.StdEncoding.DecodeString(string(b)); err == nil {
			b = raw
		}
	}
	if len(b) > 0 {
		r.Decode(b, c.text("content_type"))
	}
	return r
}

func (c columns) text(name string) string { return string(c.bytes(name)) }

func (c columns) bytes(name string) []byte {
	switch v := c[name].(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	default:
		return nil
	}
}

// json is a column of arguments that some serializer wrote, nil if they cannot be read in full.
func (c columns) json(name string) json.RawMessage {
	if b := c.bytes(name); len(b) > 0 {
		return results.Arguments(b)
	}
	return nil
}

// time is a column of a time. Tables keep no offsets: what PostgreSQL knows to be an instant is one.
func (c columns) time(name string) (t time.Time, naive bool) {
	switch v := c[name].(type) {
	case time.Time:
		return v.UTC(), true
	case string:
		return celery.ParseTime(v)
	case []byte:
		return celery.ParseTime(string(v))
	default:
		return time.Time{}, false
	}
}
