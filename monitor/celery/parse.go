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
	body, err := jsonBody(p)
	if err != nil {
		return m, err
	}
	parts, err := elements(body)
	if err != nil || len(parts) != 3 {
		return m, errors.New("read task message: its body is no array of args, kwargs and embed")
	}
	if err := setArguments(&m, parts[0], parts[1]); err != nil {
		return m, err
	}
	if parts[2] != "null" && parts[2] != "{}" {
		m.Embed = json.RawMessage(parts[2])
	}
	return m, nil
}

// fromHeaders reads the headers of protocol 2. Those of other types than Celery's are left out.
func fromHeaders(h map[string]any) Message {
	text := func(name string) string { s, _ := h[name].(string); return s }
	retries, _ := h["retries"].(int64)
	m := Message{
		ID: text("id"), Name: text("task"), RootID: text("root_id"), ParentID: text("parent_id"), GroupID: text("group"),
		Origin: text("origin"), Shadow: text("shadow"), Retries: int(retries),
		ETA: parseISO(text("eta")), Expires: parseISO(text("expires")),
	}
	if limits, ok := h["timelimit"].([]any); ok && len(limits) == 2 {
		m.Hard, m.Soft = seconds(limits[0]), seconds(limits[1])
	}
	m.Headers = maps.Clone(h)
	maps.DeleteFunc(m.Headers, func(name string, value any) bool {
		return reserved(name) || strings.HasPrefix(name, "x-") || !known(name, value)
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

// parseISO reads a time as Celery writes it, zero if it is none. One without an offset is in UTC.
func parseISO(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	return time.Time{}
}

// setArguments checks args and kwargs and keeps them.
func setArguments(m *Message, args, kwargs string) error {
	if _, err := arguments(json.RawMessage(args), "args", isArray); err != nil {
		return fmt.Errorf("read task message: %w", err)
	}
	if _, err := arguments(json.RawMessage(kwargs), "kwargs", isObject); err != nil {
		return fmt.Errorf("read task message: %w", err)
	}
	m.Args, m.Kwargs = json.RawMessage(args), json.RawMessage(kwargs)
	return nil
}

// jsonBody returns the body, if it is JSON.
func jsonBody(p broker.Publishing) (string, error) {
	p, err := Decompress(p)
	if err != nil {
		return "", fmt.Errorf("read task message: %w", err)
	}
	mime, _, _ := strings.Cut(p.ContentType, ";")
	switch strings.ToLower(strings.TrimSpace(mime)) {
	case mimeJSON:
		return string(p.Body), nil
	case "application/x-python-serialize":
		return "", errors.New("read task message: its body is a pickle")
	case "":
		return "", errors.New("read task message: its body has no content type")
	default:
		return "", fmt.Errorf("read task message: its body is %.100s, not JSON", mime)
	}
}

// elements returns the elements of a JSON array, as written.
func elements(body string) ([]string, error) {
	s := scanner{text: body}
	if !s.accept('[') {
		return nil, errMalformed
	}
	var list []string
	for {
		raw, err := s.raw()
		if err != nil {
			return nil, err
		}
		list = append(list, raw)
		if s.accept(']') && s.end() {
			return list, nil
		}
		if !s.accept(',') || len(list) > 3 {
			return nil, errMalformed
		}
	}
}

// parseFirst reads a message of protocol 1, whose body holds everything.
func parseFirst(p broker.Publishing) (Message, error) {
	body, err := jsonBody(p)
	if err != nil {
		return Message{}, err
	}
	s := scanner{text: body}
	fields := map[string]any{}
	args, kwargs := "[]", "{}"
	err = s.object(func(key string) (err error) {
		switch key {
		case "args":
			args, err = s.raw()
		case "kwargs":
			kwargs, err = s.raw()
		default:
			fields[key], err = s.value()
		}
		return err
	})
	if _, ok := fields["task"].(string); err != nil || !ok || !s.end() {
		return Message{}, errors.New("read task message: it names no task")
	}
	m := fromHeaders(fields)
	if taskset, ok := fields["taskset"].(string); ok {
		m.GroupID = taskset
	}
	m.Headers = nil
	priority := p.Priority
	m.Priority = &priority
	err = setArguments(&m, args, kwargs)
	return m, err
}
