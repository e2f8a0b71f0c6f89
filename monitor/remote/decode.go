package remote

import (
	"cmp"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/redact"
)

// Bounds of what is kept of an inspection.
const (
	maxTasks = 1_000    // tasks of each list, ids of revoked ones
	maxArgs  = 4 << 10  // bytes of arguments
	maxNames = 20_000   // registered tasks, queues, settings
	maxName  = 1 << 10  // bytes
	maxRaw   = 64 << 10 // bytes of JSON shown as it is
)

// inspection is one request of a round.
type inspection struct {
	method    string
	arguments map[string]any
}

// inspections are the requests of a round.
func inspections() []inspection {
	taskInfo := []string{
		"rate_limit", "max_retries", "soft_time_limit", "time_limit", "acks_late", "serializer", "queue", "exchange", "routing_key",
	}
	return []inspection{
		{"stats", nil},
		{"active", map[string]any{"safe": true}},
		{"reserved", nil},
		{"scheduled", nil},
		{"revoked", nil},
		{"registered", map[string]any{"taskinfoitems": taskInfo}},
		{"active_queues", nil},
		{"conf", nil},
		{"clock", nil},
	}
}

// decode sets what a reply to a method reports. It returns false if the reply is of another shape, and changes nothing
// then.
func (i *Inspection) decode(method string, v json.RawMessage) bool {
	switch method {
	case "stats":
		return set(&i.Stats, decodeStats(v))
	case "active":
		return decodeList(i, method, &i.Active, v, maxTasks, decodeTask)
	case "reserved":
		return decodeList(i, method, &i.Reserved, v, maxTasks, decodeTask)
	case "scheduled":
		return decodeList(i, method, &i.Scheduled, v, maxTasks, decodeScheduled)
	case "revoked":
		return decodeList(i, method, &i.Revoked, v, maxTasks, decodeText)
	case "registered":
		return decodeList(i, method, &i.Registered, v, maxNames, decodeRegistered)
	case "active_queues":
		return decodeList(i, method, &i.Queues, v, maxNames, decodeQueue)
	case "clock":
		return set(&i.Clock, whole(fieldsOf(v)["clock"]))
	case "conf":
		return i.decodeConf(v)
	case "report":
		text, ok := decodeText(fieldsOf(v)["ok"])
		if ok {
			i.Report = truncate.Text(text, maxRaw)
		}
		return ok
	}
	return false
}

// redactTasks takes secrets out of the arguments of the tasks that a method reports.
func (i *Inspection) redactTasks(r *redact.Redactor, method string) {
	hide := func(t *TaskInfo) {
		shown := r.Task(t.Name, redact.Call{Args: t.Args, Kwargs: t.Kwargs})
		t.Args, t.Kwargs = shown.Args, shown.Kwargs
	}
	switch method {
	case "active":
		for n := range i.Active {
			hide(&i.Active[n])
		}
	case "reserved":
		for n := range i.Reserved {
			hide(&i.Reserved[n])
		}
	case "scheduled":
		for n := range i.Scheduled {
			hide(&i.Scheduled[n].Task)
		}
	}
}

// set sets to unless v is nil.
func set[T any](to **T, v *T) bool {
	if v != nil {
		*to = v
	}
	return v != nil
}

// decodeList sets the list of a method, and how long it is: of the elements that read can decode, the first limit.
func decodeList[T any](
	i *Inspection, method string, to *[]T, v json.RawMessage, limit int, read func(json.RawMessage) (T, bool),
) bool {
	items, ok := elements(v)
	if !ok {
		return false
	}
	list := make([]T, 0, min(len(items), limit))
	for _, item := range items {
		if len(list) == limit {
			break
		}
		if decoded, ok := read(item); ok {
			list = append(list, decoded)
		}
	}
	*to, i.Totals[method] = list, len(items)
	return true
}

// decodeTask reads what a worker reports of a task.
func decodeTask(v json.RawMessage) (TaskInfo, bool) {
	f := fieldsOf(v)
	id := f.text("id")
	if id == "" {
		return TaskInfo{}, false
	}
	delivery := fieldsOf(f["delivery_info"])
	r := TaskInfo{
		ID:          id,
		Name:        f.text("name"),
		Type:        f.text("type"),
		Args:        arguments(f["args"]),
		Kwargs:      arguments(f["kwargs"]),
		StartedAt:   moment(f["time_start"]),
		PID:         whole(f["worker_pid"]),
		Queue:       delivery.text("routing_key"),
		Priority:    whole(delivery["priority"]),
		Redelivered: flag(delivery["redelivered"]),
	}
	if r.Name == "" {
		r.Name = r.Type
	}
	if acknowledged := flag(f["acknowledged"]); acknowledged != nil {
		r.Acknowledged = *acknowledged
	}
	if limits, ok := elements(f["timelimit"]); ok && len(limits) == 2 { // as in task messages: hard, soft
		r.HardLimit, r.SoftLimit = limit(limits[0]), limit(limits[1])
	}
	return r, true
}

// decodeScheduled reads a task that waits for its time.
func decodeScheduled(v json.RawMessage) (ScheduledTask, bool) {
	f := fieldsOf(v)
	task, ok := decodeTask(f["request"])
	eta, _ := celery.ParseTime(f.text("eta"))
	return ScheduledTask{ETA: eta.UTC(), Task: task}, ok
}

// decodeText reads a text that is not empty.
func decodeText(v json.RawMessage) (string, bool) {
	s := str(v)
	return s, s != ""
}

// decodeRegistered reads name [key=value key=value]. Values may contain spaces.
func decodeRegistered(v json.RawMessage) (RegisteredTask, bool) {
	text := str(v)
	name, rest, found := strings.Cut(text, " [")
	if !found || !strings.HasSuffix(rest, "]") {
		return RegisteredTask{Name: text}, text != ""
	}
	r := RegisteredTask{Name: name, Info: make(map[string]string)}
	key := ""
	for word := range strings.SplitSeq(strings.TrimSuffix(rest, "]"), " ") {
		k, value, pair := strings.Cut(word, "=")
		switch {
		case pair:
			key = k
			r.Info[key] = value
		case key != "":
			r.Info[key] += " " + word
		}
	}
	return r, true
}

// decodeQueue reads a queue that a worker consumes from.
func decodeQueue(v json.RawMessage) (ConsumedQueue, bool) {
	f := fieldsOf(v)
	exchange := fieldsOf(f["exchange"])
	q := ConsumedQueue{
		Name:         f.text("name"),
		Exchange:     exchange.text("name"),
		ExchangeType: exchange.text("type"),
		RoutingKey:   f.text("routing_key"),
		Durable:      flag(f["durable"]),
		Arguments:    fieldsOf(f["queue_arguments"]),
		MaxPriority:  whole(f["max_priority"]),
	}
	if q.MaxPriority == nil {
		q.MaxPriority = whole(q.Arguments["x-max-priority"])
	}
	return q, q.Name != ""
}

// decodeConf sets the settings.
func (i *Inspection) decodeConf(v json.RawMessage) bool {
	f := fieldsOf(v)
	if f == nil {
		return false
	}
	i.Conf = make(map[string]json.RawMessage, len(f))
	for key, value := range f {
		if len(i.Conf) < maxNames {
			i.Conf[key] = bounded(value)
		}
	}
	return true
}

// fields are the members of an object. Those of anything else are nil.
type fields map[string]json.RawMessage

func fieldsOf(v json.RawMessage) fields {
	var f fields
	if json.Unmarshal(v, &f) != nil {
		return nil
	}
	return f
}

// text is a name, empty if it is none.
func (f fields) text(key string) string { return truncate.Text(str(f[key]), maxName) }

// elements are those of an array.
func elements(v json.RawMessage) ([]json.RawMessage, bool) {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil || list == nil {
		return nil, false
	}
	return list, true
}

// str is a string, empty if it is none.
func str(v json.RawMessage) string {
	var s string
	if len(v) == 0 || json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// flag is a boolean, nil if it is none.
func flag(v json.RawMessage) *bool {
	var b *bool
	if len(v) == 0 || json.Unmarshal(v, &b) != nil {
		return nil
	}
	return b
}

// unquoted is the text of v, or the text in it if it is a string.
func unquoted(v json.RawMessage) string { return strings.TrimSpace(cmp.Or(str(v), string(v))) }

// float is a number, or text that is one. Workers write "N/A" and null for what they do not know.
func float(v json.RawMessage) *float64 {
	n, err := strconv.ParseFloat(unquoted(v), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return nil
	}
	return &n
}

// whole is an integer, or text that is one.
func whole(v json.RawMessage) *int64 {
	if n, err := strconv.ParseInt(unquoted(v), 10, 64); err == nil {
		return &n
	}
	f := float(v)
	if f == nil || math.Abs(*f) >= 1<<62 {
		return nil
	}
	n := int64(*f)
	return &n
}

// limit is a time limit in seconds, nil if there is none.
func limit(v json.RawMessage) *float64 {
	if n := float(v); n != nil && *n > 0 {
		return n
	}
	return nil
}

// moment is a time in seconds since 1970, zero if it cannot be.
func moment(v json.RawMessage) time.Time {
	n := float(v)
	if n == nil || *n < 946684800 || *n >= 4102444800 { // 2000 to 2100
		return time.Time{}
	}
	return time.UnixMicro(int64(math.Round(*n * 1e6))).UTC()
}

// arguments are shown as Python does. Workers send them so when they are asked to, and as values otherwise.
func arguments(v json.RawMessage) string {
	var text string
	switch {
	case len(v) == 0:
		return ""
	case json.Unmarshal(v, &text) == nil: // null too
		return truncate.Text(text, maxArgs)
	}
	if len(v) > maxRaw { // not worth reading for what is shown of it
		return truncate.Text(string(v), maxArgs)
	}
	return truncate.Text(celery.Repr(v), maxArgs)
}

// bounded is JSON that is not too long, else a text that says so.
func bounded(v json.RawMessage) json.RawMessage {
	if len(v) <= maxRaw {
		return v
	}
	return json.RawMessage(strconv.Quote("too long to show: " + strconv.Itoa(len(v)) + " bytes"))
}
