package flower

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/command"
)

// taskOptions are the body of a request for a task.
type taskOptions struct {
	command.TaskRequest

	timeout json.RawMessage // of apply
}

// parseTime reads a time of an option.
type parseTime func(s string) (time.Time, bool)

// flowerTime reads a time as Flower does, in UTC.
func flowerTime(s string) (time.Time, bool) {
	t, err := time.Parse("2006-01-02 15:04:05.999999", s)
	return t, err == nil && strings.Contains(s, ".")
}

// isoTime reads a time as flowerTime does, or as workers do.
func isoTime(s string) (time.Time, bool) {
	if t, ok := flowerTime(s); ok {
		return t, true
	}
	t, _ := celery.ParseTime(s)
	return t, !t.IsZero()
}

func badOption(format string, args ...any) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

// readTask reads the body of a request for a task: its arguments and the options of Celery's apply_async. What Celery would
// ignore is ignored, what would change the task and cannot be had is refused.
func readTask(r *request, now time.Time, parse parseTime) (taskOptions, error) {
	var o taskOptions
	body, err := readBody(r.Request)
	if err != nil {
		return o, err
	}
	var options map[string]json.RawMessage
	if len(body) > 0 {
		if !json.Valid(body) {
			return o, badOption("The body is not JSON.")
		}
		if json.Unmarshal(body, &options) != nil || options == nil {
			return o, badOption("invalid options")
		}
	}
	if args, given := options["args"]; given && !bytes.HasPrefix(args, []byte("[")) {
		return o, badOption("args must be an array")
	}
	o.Args, o.Kwargs, o.timeout = options["args"], set(options["kwargs"]), set(options["timeout"])
	for name, value := range options {
		if set(value) == nil {
			continue // as if it were not there
		}
		if err := o.read(name, value); err != nil {
			return o, err
		}
	}
	return o, o.readTimes(options, now, parse)
}

// set returns nil for null.
func set(value json.RawMessage) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return value
}

// read reads an option but for times.
func (o *taskOptions) read(name string, value json.RawMessage) error {
	to := map[string]any{
		"queue": &o.Queue, "task_id": &o.ID, "root_id": &o.Root, "parent_id": &o.Parent, "shadow": &o.Shadow, "priority": &o.Priority,
		"time_limit": &o.Hard, "soft_time_limit": &o.Soft,
	}[name]
	switch name {
	case "serializer":
		if json.Unmarshal(value, &o.Serializer) != nil || !slices.Contains(celery.Serializers(), o.Serializer) {
			return badOption("Invalid option: serializer must be json, msgpack or yaml")
		}
	case "chain", "chord", "group_id", "group_index", "reply_to", "retries", "stamped_headers":
		return badOption("Invalid option: %s cannot be set", name)
	case "exchange":
		if string(value) != `""` {
			return badOption("Invalid option: exchange cannot be set, name a queue")
		}
	case "ignore_result":
		var ignore bool
		if json.Unmarshal(value, &ignore) != nil {
			return badOption("Invalid option: %s", name)
		}
		o.header(name, ignore)
	case "headers":
		return o.readHeaders(value)
	case "link", "link_error":
		return o.readLink(name, value)
	}
	if to != nil && json.Unmarshal(value, to) != nil {
		return badOption("Invalid option: %s", name)
	}
	return nil
}

func (o *taskOptions) header(name string, value any) {
	if o.Headers == nil {
		o.Headers = make(map[string]any)
	}
	o.Headers[name] = value
}

// readHeaders reads headers of the message.
func (o *taskOptions) readHeaders(value json.RawMessage) error {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var headers map[string]any
	if d.Decode(&headers) != nil {
		return badOption("Invalid option: headers")
	}
	for name, v := range headers {
		o.header(name, v)
	}
	return nil
}

// readLink reads callbacks: a signature, or a list of signatures.
func (o *taskOptions) readLink(name string, value json.RawMessage) error {
	embed := map[string]json.RawMessage{}
	if len(o.Embed) > 0 {
		_ = json.Unmarshal(o.Embed, &embed) // written here
	}
	if !bytes.HasPrefix(value, []byte("[")) {
		value = json.RawMessage("[" + string(value) + "]")
	}
	if name == "link" {
		embed["callbacks"] = value
	} else {
		embed["errbacks"] = value
	}
	var err error
	o.Embed, err = json.Marshal(embed)
	return err
}

// maxSeconds bounds times from now.
const maxSeconds = 10 * 365 * 24 * 3600

// readSeconds reads a number, or text of one.
func readSeconds(value json.RawMessage) (float64, bool) {
	var text string
	var f float64
	var ok bool
	if json.Unmarshal(value, &text) == nil {
		f, ok = parseFloat(text)
	} else {
		ok = json.Unmarshal(value, &f) == nil
	}
	return f, ok && !math.IsNaN(f) && math.Abs(f) <= maxSeconds
}

// readTimes reads eta, countdown and expires.
func (o *taskOptions) readTimes(options map[string]json.RawMessage, now time.Time, parse parseTime) error {
	after := func(seconds float64) time.Time { return now.Add(time.Duration(seconds * float64(time.Second))) }
	if value := set(options["eta"]); value != nil {
		var text string
		ok := json.Unmarshal(value, &text) == nil
		if ok {
			o.ETA, ok = parse(text)
		}
		if !ok {
			return badOption("Invalid option")
		}
	}
	if value := set(options["countdown"]); value != nil { // goes before eta, as in Celery
		n, ok := readSeconds(value)
		if !ok {
			return badOption("Invalid option")
		}
		o.ETA = after(n)
		if n == 0 {
			o.ETA = time.Time{}
		}
	}
	value := set(options["expires"])
	if value == nil {
		return nil
	}
	n, ok := readSeconds(value)
	var text string
	switch {
	case ok:
		o.Expires = after(n)
	case json.Unmarshal(value, &text) == nil:
		o.Expires, ok = parse(text)
	}
	if !ok {
		return badOption("Invalid option")
	}
	return nil
}
