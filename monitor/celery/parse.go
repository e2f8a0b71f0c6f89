package celery

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
)

// ParseMessage reads a task message of protocol 2 or 1 that waits in a queue. Args and Kwargs are empty, with an
// error, if the serializer is not supported, or if they would not be the same once published again.
func ParseMessage(p broker.Publishing) (Message, error) {
	if _, ok := p.Headers["task"].(string); !ok {
		return parseFirst(p)
	}
	m := fromHeaders(p.Headers)
	priority := p.Priority
	m.Priority = &priority
	var body json.RawMessage
	var err error
	if body, m.Serializer, err = jsonBody(p); err != nil {
		return m, err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(body, &parts); err != nil || len(parts) != 3 {
		return m, errors.New("read task message: its body is not an array of args, kwargs and embed")
	}
	if err := setArguments(&m, parts[0], parts[1]); err != nil {
		return m, err
	}
	if embed := string(parts[2]); embed != "null" && embed != "{}" {
		m.Embed = parts[2]
	}
	return m, nil
}

// fromHeaders reads the headers of protocol 2. Those of other types than Celery's are left out.
func fromHeaders(h map[string]any) Message {
	text := func(name string) string { s, _ := h[name].(string); return s }
	retries, _ := h["retries"].(int64)
	eta, _ := ParseTime(text("eta"))
	expires, _ := ParseTime(text("expires"))
	m := Message{
		ID: text("id"), Name: text("task"), RootID: text("root_id"), ParentID: text("parent_id"), GroupID: text("group"),
		Origin: text("origin"), Shadow: text("shadow"), Retries: int(retries),
		ETA: eta, Expires: expires,
	}
	if limits, ok := h["timelimit"].([]any); ok && len(limits) == 2 {
		m.HardLimit, m.SoftLimit = seconds(limits[0]), seconds(limits[1])
	}
	m.Headers = maps.Clone(h)
	maps.DeleteFunc(m.Headers, func(name string, value any) bool {
		return reserved(name) || strings.HasPrefix(name, "x-") || !validHeader(name, value)
	})
	return m
}

// seconds is a time limit, nil for none.
func seconds(v any) *float64 {
	switch v := v.(type) {
	case int64:
		f := float64(v)
		return &f
	case float64:
		return &v
	}
	return nil
}

// ParseTime parses a time as Celery writes it, in ISO 8601. naive reports that it has no offset: it is taken for UTC
// then. t is zero if s is not a time.
func ParseTime(s string) (t time.Time, naive bool) {
	s = strings.Replace(s, " ", "T", 1)
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, false
	}
	if t, err := time.Parse("2006-01-02T15:04:05.999999999", s); err == nil {
		return t, true
	}
	return time.Time{}, false
}

// setArguments checks args and kwargs and sets them in m.
func setArguments(m *Message, args, kwargs json.RawMessage) error {
	if _, err := arguments(args, "args", isArray); err != nil {
		return fmt.Errorf("read task message: %w", err)
	}
	if _, err := arguments(kwargs, "kwargs", isObject); err != nil {
		return fmt.Errorf("read task message: %w", err)
	}
	m.Args, m.Kwargs = args, kwargs
	return nil
}

// jsonBody returns the body as JSON, and how it was written.
func jsonBody(p broker.Publishing) (json.RawMessage, Serializer, error) {
	p, err := Decompress(p)
	if err != nil {
		return nil, "", fmt.Errorf("read task message: %w", err)
	}
	serializer, ok := SerializerOf(p.ContentType)
	if !ok || p.ContentType == "" {
		return nil, "", fmt.Errorf("read task message: %w", unreadable(p.ContentType))
	}
	body, err := serializer.toJSON(p.Body, lossless)
	if err != nil {
		return nil, serializer, fmt.Errorf("read task message in %s: %w", serializer, err)
	}
	if serializer == JSON {
		serializer = ""
	}
	return body, serializer, nil
}

// parseFirst reads a message of protocol 1, whose body holds everything.
func parseFirst(p broker.Publishing) (Message, error) {
	body, serializer, err := jsonBody(p)
	if err != nil {
		return Message{}, err
	}
	fields := map[string]any{}
	if text, err := StrictJSON(body); err == nil {
		v, _ := decodeValue(text)
		fields, _ = v.(map[string]any)
	}
	if _, ok := fields["task"].(string); !ok {
		return Message{}, errors.New("read task message: it names no task")
	}
	m := fromHeaders(fields)
	m.Serializer = serializer
	if taskset, ok := fields["taskset"].(string); ok {
		m.GroupID = taskset
	}
	m.Headers = nil
	priority := p.Priority
	m.Priority = &priority
	parts := struct{ Args, Kwargs json.RawMessage }{json.RawMessage("[]"), json.RawMessage("{}")}
	if err := json.Unmarshal(body, &parts); err != nil {
		return m, fmt.Errorf("read task message: %w", err)
	}
	err = setArguments(&m, parts.Args, parts.Kwargs)
	return m, err
}
