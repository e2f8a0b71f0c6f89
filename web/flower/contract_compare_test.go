package flower_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
)

// compare returns how Umbel's answer differs from Flower's.
func compare(flower, umbel answer) []string {
	var found []string
	differ := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	if flower.status != umbel.status {
		differ("status: %d, of Flower %d", umbel.status, flower.status)
	}
	for _, name := range []string{"Content-Type", "Location", "Www-Authenticate"} {
		if f, u := flower.header.Get(name), umbel.header.Get(name); f != u {
			differ("%s: %q, of Flower %q", name, u, f)
		}
	}
	if f, u := flower.header.Get("Etag") != "", umbel.header.Get("Etag") != ""; f != u {
		differ("has an ETag: %v, Flower %v", u, f)
	}
	if !strings.HasPrefix(flower.header.Get("Content-Type"), "application/json") {
		if flower.body != umbel.body {
			differ("body: %q, of Flower %q", umbel.body, flower.body)
		}
		return found
	}
	f, errFlower := decode(flower.body)
	u, errUmbel := decode(umbel.body)
	if errFlower != nil || errUmbel != nil {
		differ("JSON: %v, of Flower %v", errUmbel, errFlower)
		return found
	}
	compareJSON("", f, u, differ)
	if f, u := spaced(flower.body), spaced(umbel.body); f != u {
		differ("written otherwise: %q, by Flower %q", u, f)
	}
	return found
}

// members is an object with its keys in order.
type members struct {
	keys   []string
	values map[string]any
}

// decode reads JSON, with objects as *members and numbers as they are written.
func decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeValue(d)
	if err != nil {
		return nil, fmt.Errorf("%w in %q", err, text)
	}
	return v, nil
}

func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := &members{values: make(map[string]any)}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name := key.(string)
			o.keys = append(o.keys, name)
			if o.values[name], err = decodeValue(d); err != nil {
				return nil, err
			}
		}
		_, err := d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return token, nil
}

// varying are the keys whose values differ from one moment, or one observer, to the next: only their types are compared.
var varying = []string{
	"clock", "uptime", "rusage", "writes", "loadavg", "heartbeats", "active", "pid", "processes", "worker-heartbeat",
	"prefetch_count", "time_start", "garbage_collection", "memory", "message_bytes_ram", "worker_pid", "task-id",
}

// compareJSON reports where values differ. Times are equal to the microsecond, which is what Umbel keeps.
func compareJSON(at string, flower, umbel any, differ func(string, ...any)) {
	switch f := flower.(type) {
	case *members:
		u, ok := umbel.(*members)
		if !ok {
			differ("%s: %v, of Flower an object", at, umbel)
			return
		}
		withoutItself(f)
		withoutCustomTime(f, u)
		withoutForced(f, u)
		if withoutOnline(f) && withoutOnline(u) {
			f.keys, u.keys = slices.Sorted(slices.Values(f.keys)), slices.Sorted(slices.Values(u.keys)) // counts are in the order of arrival
		}
		compareKeys(at, f, u, differ)
		for _, key := range f.keys {
			if value, ok := u.values[key]; ok {
				compareJSON(at+"."+key, f.values[key], value, differ)
			}
		}
	case []any:
		u, ok := umbel.([]any)
		if !ok || len(f) != len(u) && !varies(at) {
			differ("%s: %v, of Flower %v", at, show(umbel), show(flower))
			return
		}
		for i := range min(len(f), len(u)) {
			compareJSON(fmt.Sprintf("%s[%d]", at, i), f[i], u[i], differ)
		}
	default:
		if kind(flower) != kind(umbel) {
			differ("%s: %s %v, of Flower %s %v", at, kind(umbel), show(umbel), kind(flower), show(flower))
		} else if !varies(at) && !equal(flower, umbel) {
			differ("%s: %v, of Flower %v", at, show(umbel), show(flower))
		}
	}
}

// withoutOnline takes the count of worker-online from a worker, and reports whether it is one: who watched too late has not
// seen that.
func withoutOnline(worker *members) bool {
	if _, ok := worker.values["hostname"]; !ok {
		return false
	}
	worker.keys = slices.DeleteFunc(worker.keys, func(key string) bool { return key == "worker-online" })
	delete(worker.values, "worker-online")
	return true
}

// withoutItself takes a task that is its own parent from its family, as the difference "parent of itself" says.
func withoutItself(task *members) {
	id, ok := task.values["uuid"]
	if !ok {
		return
	}
	for _, key := range []string{"parent", "parent_id"} {
		if task.values[key] == id {
			task.values[key] = nil
		}
	}
	if children, ok := task.values["children"].([]any); ok {
		task.values["children"] = slices.DeleteFunc(children, func(child any) bool { return child == id })
	}
}

// withoutCustomTime takes the time of the task with an event of its own from both: the child process sends that event, so that
// it may arrive before or after those of the worker. Flower keeps the time of the event that arrived last, Umbel that of the
// causally newest.
func withoutCustomTime(flower, umbel *members) {
	if flower.values["uuid"] == "custom" && umbel.values["timestamp"] != nil {
		umbel.values["timestamp"] = flower.values["timestamp"]
	}
}

// withoutForced takes the frequency of heartbeats from both where Flower has that of a heartbeat which Umbel asked for: every
// such one says 5.
func withoutForced(flower, umbel *members) {
	if flower.values["freq"] == json.Number("5") && umbel.values["freq"] != nil {
		umbel.values["freq"] = flower.values["freq"]
	}
}

// compareKeys reports keys that only one has, and another order. RabbitMQ tells since when a queue is idle a while after it is.
func compareKeys(at string, f, u *members, differ func(string, ...any)) {
	for _, o := range []*members{f, u} {
		o.keys = slices.DeleteFunc(o.keys, func(key string) bool { return key == "idle_since" })
		delete(o.values, "idle_since")
	}
	for _, key := range f.keys {
		if _, ok := u.values[key]; !ok {
			differ("%s lacks %q", at, key)
		}
	}
	for _, key := range u.keys {
		if _, ok := f.values[key]; !ok {
			differ("%s has %q beside Flower's keys", at, key)
		}
	}
	common := func(o, other *members) []string {
		return slices.DeleteFunc(slices.Clone(o.keys), func(key string) bool { _, ok := other.values[key]; return !ok })
	}
	if fk, uk := common(f, u), common(u, f); !slices.Equal(fk, uk) && !strings.Contains(at, "@") { // the order of replies is that of their arrival
		differ("%s: keys in the order %q, of Flower %q", at, uk, fk)
	}
}

// varies reports whether a place is below a key that varies.
func varies(at string) bool {
	return strings.Contains(at, "@") && strings.HasSuffix(at, ".timestamp") || slices.ContainsFunc(strings.FieldsFunc(at, func(r rune) bool { return r == '.' || r == '[' }), func(key string) bool {
		return slices.Contains(varying, key)
	})
}

// kind is the type of a value of JSON. Python writes floats with a point or an exponent.
func kind(v any) string {
	switch n := v.(type) {
	case nil:
		return "null"
	case json.Number:
		if strings.ContainsAny(n.String(), ".e") {
			return "float"
		}
		return "int"
	}
	return fmt.Sprintf("%T", v)
}

// equal compares numbers to the microsecond.
func equal(a, b any) bool {
	n, ok := a.(json.Number)
	m, alsoOK := b.(json.Number)
	if !ok || !alsoOK {
		return a == b
	}
	x, _ := n.Float64()
	y, _ := m.Float64()
	return n == m || kind(n) == "float" && math.Abs(x-y) < 2e-6
}

func show(v any) string {
	s := fmt.Sprint(v)
	if o, ok := v.(*members); ok {
		s = fmt.Sprint(slices.Sorted(maps.Keys(o.values)))
	}
	return s[:min(len(s), 300)]
}

// spaced tells how JSON is written: with what spaces, and whether anything but ASCII is in it.
func spaced(text string) string {
	style := ""
	for _, what := range []string{`": `, `":"`, `, "`, `,"`, "\n", "</"} {
		if strings.Contains(text, what) {
			style += fmt.Sprintf("%q ", what)
		}
	}
	if bytes.ContainsFunc([]byte(text), func(r rune) bool { return r > 126 }) {
		style += "Unicode"
	}
	return style
}

// line is the status and the body.
func (a answer) line() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// table is the path of a page of 20 tasks.
func table(column int, key, direction, search string) string {
	return fmt.Sprintf("/tasks/datatable?draw=3&start=0&length=20&order%%5B0%%5D%%5Bcolumn%%5D=%d&order%%5B0%%5D%%5Bdir%%5D=%s"+
		"&columns%%5B%d%%5D%%5Bdata%%5D=%s&search%%5Bvalue%%5D=%s", column, direction, column, key, escape(search))
}

func escape(s string) string { return url.QueryEscape(s) }
