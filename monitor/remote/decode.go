package remote

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/celery"
)

// Bounds of what is kept of an inspection.
const (
	maxRequests = 1_000    // tasks of each list, ids of revoked ones
	maxArgs     = 4 << 10  // bytes of arguments
	maxNames    = 20_000   // registered tasks, queues, settings
	maxName     = 1 << 10  // bytes
	maxRaw      = 64 << 10 // bytes of JSON shown as it is
)

// inspection is one request of a round.
type inspection struct {
	method    string
	arguments map[string]any
	// decode puts a reply into its place. It returns false if it is of another shape, and changes nothing then.
	decode func(*Inspection, json.RawMessage) bool
}

// inspections are the requests of a round.
func inspections() []inspection {
	return []inspection{
		{"stats", nil, decodeStats},
		{"active", map[string]any{"safe": true}, decodeActive},
		{"reserved", nil, decodeReserved},
		{"scheduled", nil, decodeScheduled},
		{"revoked", nil, decodeRevoked},
		{"registered", map[string]any{"taskinfoitems": taskInfo()}, decodeRegistered},
		{"active_queues", nil, decodeQueues},
		{"conf", nil, decodeConf},
		{"clock", nil, decodeClock},
	}
}

// taskInfo are the attributes of registered tasks that are asked for.
func taskInfo() []string {
	return []string{
		"rate_limit", "max_retries", "soft_time_limit", "time_limit", "acks_late", "serializer", "queue", "exchange", "routing_key",
	}
}

func decodeActive(i *Inspection, v json.RawMessage) bool {
	return decodeRequests(i, "active", &i.Active, v)
}

func decodeReserved(i *Inspection, v json.RawMessage) bool {
	return decodeRequests(i, "reserved", &i.Reserved, v)
}

// decodeRequests reads a list of tasks.
func decodeRequests(i *Inspection, method string, to *[]TaskInfo, v json.RawMessage) bool {
	items, ok := elements(v)
	if !ok {
		return false
	}
	list := make([]TaskInfo, 0, min(len(items), maxRequests))
	for _, item := range items {
		if len(list) == maxRequests {
			break
		}
		if r, ok := decodeRequest(item); ok {
			list = append(list, r)
		}
	}
	*to, i.Totals[method] = list, len(items)
	return true
}

// decodeRequest reads what a worker tells of a task.
func decodeRequest(v json.RawMessage) (TaskInfo, bool) {
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
		r.Hard, r.Soft = limit(limits[0]), limit(limits[1])
	}
	return r, true
}

// decodeScheduled reads the list of tasks that wait for their time.
func decodeScheduled(i *Inspection, v json.RawMessage) bool {
	items, ok := elements(v)
	if !ok {
		return false
	}
	list := make([]Scheduled, 0, min(len(items), maxRequests))
	for _, item := range items {
		if len(list) == maxRequests {
			break
		}
		f := fieldsOf(item)
		if r, ok := decodeRequest(f["request"]); ok {
			list = append(list, Scheduled{ETA: stamp(f.text("eta")), Task: r})
		}
	}
	i.Scheduled, i.Totals["scheduled"] = list, len(items)
	return true
}

// decodeRevoked reads the list of revoked ids.
func decodeRevoked(i *Inspection, v json.RawMessage) bool {
	items, ok := elements(v)
	if !ok {
		return false
	}
	list := make([]string, 0, min(len(items), maxRequests))
	for _, item := range items[:min(len(items), maxRequests)] {
		if id := str(item); id != "" {
			list = append(list, id)
		}
	}
	i.Revoked, i.Totals["revoked"] = list, len(items)
	return true
}

// decodeRegistered reads a list of name [key=value key=value].
func decodeRegistered(i *Inspection, v json.RawMessage) bool {
	items, ok := elements(v)
	if !ok {
		return false
	}
	list := make([]Registered, 0, min(len(items), maxNames))
	for _, item := range items[:min(len(items), maxNames)] {
		if text := str(item); text != "" {
			list = append(list, registered(text))
		}
	}
	i.Registered, i.Totals["registered"] = list, len(items)
	return true
}

// registered splits name [key=value key=value]. Values may hold spaces.
func registered(text string) Registered {
	name, rest, found := strings.Cut(text, " [")
	if !found || !strings.HasSuffix(rest, "]") {
		return Registered{Name: text}
	}
	r := Registered{Name: name, Info: make(map[string]string)}
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
	return r
}

// decodeQueues reads the list of queues.
func decodeQueues(i *Inspection, v json.RawMessage) bool {
	items, ok := elements(v)
	if !ok {
		return false
	}
	list := make([]Consumed, 0, min(len(items), maxNames))
	for _, item := range items[:min(len(items), maxNames)] {
		f := fieldsOf(item)
		exchange := fieldsOf(f["exchange"])
		q := Consumed{
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
		if q.Name != "" {
			list = append(list, q)
		}
	}
	i.Queues, i.Totals["active_queues"] = list, len(items)
	return true
}

// decodeConf reads the settings.
func decodeConf(i *Inspection, v json.RawMessage) bool {
	f := fieldsOf(v)
	if f == nil {
		return false
	}
	conf := make(map[string]json.RawMessage, len(f))
	for key, value := range f {
		if len(conf) < maxNames {
			conf[key] = bounded(value)
		}
	}
	i.Conf = conf
	return true
}

func decodeClock(i *Inspection, v json.RawMessage) bool {
	n := whole(fieldsOf(v)["clock"])
	if n == nil {
		return false
	}
	i.Clock = n
	return true
}

// decodeReport reads the text of celery report.
func decodeReport(i *Inspection, v json.RawMessage) bool {
	f := fieldsOf(v)
	text := str(f["ok"])
	if text == "" {
		return false
	}
	i.Report = truncate.Text(text, maxRaw)
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

// float is a number, or text that is one. Workers write "N/A" and null for what they do not know.
func float(v json.RawMessage) *float64 {
	text := str(v)
	if text == "" {
		text = string(v)
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return nil
	}
	return &n
}

// whole is an integer, or text that is one.
func whole(v json.RawMessage) *int64 {
	text := str(v)
	if text == "" {
		text = string(v)
	}
	if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
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

// stamp reads an ISO time. Without an offset it is UTC's.
func stamp(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
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
