package celery

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/broker"
)

// MaxArguments bounds the total length of Args and Kwargs of a Message, bytes.
const MaxArguments = 512 << 10

const (
	maxName   = 255       // characters of a task's name, bytes of an id: AMQP keeps correlation ids in one byte
	maxLimit  = 1_000_000 // seconds of a time limit: eleven days
	isoMicros = "2006-01-02T15:04:05.000000-07:00"
)

// Message is a task message of protocol 2. ID and Name are required.
type Message struct {
	ID        string
	Name      string
	Args      json.RawMessage // an array, [] if empty
	Kwargs    json.RawMessage // an object, {} if empty
	RootID    string          // ID if empty
	ParentID  string
	GroupID   string
	ETA       time.Time // zero: at once
	Expires   time.Time // zero: never
	Retries   int
	HardLimit *float64 // time limits, seconds
	SoftLimit *float64
	Priority  *uint8 // 0 to 9
	Origin    string // who publishes, as gen<pid>@host
	// Serializer writes the body; empty is JSON.
	Serializer Serializer
	// Shadow is a name to show in place of Name.
	Shadow string
	// Embed holds callbacks, errbacks, chain and chord of a message that is sent again, nil for none.
	Embed json.RawMessage
	// Headers are further ones, such as stamps, of a message that is sent again.
	Headers map[string]any
}

// MessageError is an invalid part of a message.
type MessageError struct {
	Path    string // args[2].price
	Message string
}

// Error returns the path and what is wrong there.
func (e *MessageError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Message) }

// Publishing checks the message and returns it as it goes to a queue at the moment now. Its error is a
// *MessageError. It is strict because a malformed message kills the worker that receives it.
func (m Message) Publishing(now time.Time) (broker.Publishing, error) {
	var p broker.Publishing
	args, kwargs, err := m.check(now)
	if err != nil {
		return p, err
	}
	p = broker.Publishing{CorrelationID: m.ID, Persistent: true, Headers: m.headers()}
	m.Serializer.label(&p)
	if p.Body, err = m.Serializer.encode(m.body(), "body"); err != nil {
		return broker.Publishing{}, bodyError(err)
	}
	p.Headers["argsrepr"], p.Headers["kwargsrepr"] = pythonRepr(args), pythonRepr(kwargs)
	if m.Priority != nil {
		p.Priority = *m.Priority
	}
	if !m.Expires.IsZero() {
		p.Expiration = strconv.FormatInt(m.Expires.Sub(now).Milliseconds(), 10)
	}
	return p, nil
}

// bodyError names the part of a body that is wrong as people know it.
func bodyError(err error) error {
	var wrong *MessageError
	if !errors.As(err, &wrong) {
		return err
	}
	for i, part := range []string{"args", "kwargs", "embed"} {
		if rest, ok := strings.CutPrefix(wrong.Path, fmt.Sprintf("body[%d]", i)); ok {
			return &MessageError{Path: part + rest, Message: wrong.Message}
		}
	}
	return wrong
}

// headers returns all but the reprs.
func (m Message) headers() map[string]any {
	h := map[string]any{
		"lang": "py", "task": m.Name, "id": m.ID, "root_id": m.RootID, "parent_id": optional(m.ParentID),
		"group": optional(m.GroupID), "group_index": nil, "shadow": optional(m.Shadow),
		"eta": iso(m.ETA), "expires": iso(m.Expires), "retries": int64(m.Retries),
		"timelimit": []any{limit(m.HardLimit), limit(m.SoftLimit)}, "origin": m.Origin, "ignore_result": false,
		"replaced_task_nesting": int64(0), "stamped_headers": nil, "stamps": map[string]any{},
	}
	if m.RootID == "" {
		h["root_id"] = m.ID
	}
	maps.Copy(h, m.Headers)
	return h
}

// body is the array of arguments, keyword arguments and callbacks.
func (m Message) body() []byte {
	args, kwargs, embed := m.Args, m.Kwargs, m.Embed
	if len(args) == 0 {
		args = json.RawMessage("[]")
	}
	if len(kwargs) == 0 {
		kwargs = json.RawMessage("{}")
	}
	if len(embed) == 0 {
		embed = json.RawMessage(`{"callbacks": null, "errbacks": null, "chain": null, "chord": null}`)
	}
	return fmt.Appendf(nil, "[%s, %s, %s]", args, kwargs, embed)
}

// optional is s, nil if it is empty.
func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// iso is t as Celery writes it, nil if it is zero.
func iso(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(isoMicros)
}

// limit is a time limit: an integer where it can be one.
func limit(seconds *float64) any {
	switch {
	case seconds == nil:
		return nil
	case *seconds == math.Trunc(*seconds):
		return int64(*seconds)
	default:
		return *seconds
	}
}

// check returns the arguments if the whole message is right.
func (m Message) check(now time.Time) (args, kwargs node, err error) {
	if err := m.checkNames(); err != nil {
		return args, kwargs, err
	}
	if err := m.Serializer.check(); err != nil {
		return args, kwargs, err
	}
	if err := m.checkTimes(now); err != nil {
		return args, kwargs, err
	}
	if m.Priority != nil && *m.Priority > 9 {
		return args, kwargs, &MessageError{Path: "priority", Message: "must be from 0 to 9"}
	}
	if m.Retries < 0 || m.Retries > math.MaxInt32 {
		return args, kwargs, &MessageError{Path: "retries", Message: "must be from 0 to 2,147,483,647"}
	}
	if err := checkHeaders(m.Headers); err != nil {
		return args, kwargs, err
	}
	if err := checkEmbed(m.Embed); err != nil {
		return args, kwargs, err
	}
	if args, err = arguments(m.Args, "args", isArray); err != nil {
		return args, kwargs, err
	}
	if kwargs, err = arguments(m.Kwargs, "kwargs", isObject); err != nil {
		return args, kwargs, err
	}
	if len(m.Args)+len(m.Kwargs) > MaxArguments {
		message := fmt.Sprintf("must not be longer than %d bytes together with kwargs", MaxArguments)
		return args, kwargs, &MessageError{Path: "args", Message: message}
	}
	return args, kwargs, nil
}

// arguments parses args or kwargs.
func arguments(raw json.RawMessage, path string, want kind) (node, error) {
	if len(raw) == 0 {
		return node{kind: want}, nil
	}
	if len(raw) > MaxArguments {
		message := fmt.Sprintf("must not be longer than %d bytes", MaxArguments)
		return node{}, &MessageError{Path: path, Message: message}
	}
	n, err := parseNode(raw, path)
	if err != nil {
		return node{}, err
	}
	if n.kind != want || want == isObject && wraps(n) {
		message := map[kind]string{isArray: "must be an array", isObject: "must be an object"}[want]
		return node{}, &MessageError{Path: path, Message: message}
	}
	return n, nil
}

func (m Message) checkNames() error {
	if err := CheckName(m.Name); err != nil {
		return err
	}
	if m.ID == "" {
		return &MessageError{Path: "id", Message: "must not be empty"}
	}
	for path, value := range map[string]string{
		"id": m.ID, "root_id": m.RootID, "parent_id": m.ParentID, "group": m.GroupID, "origin": m.Origin, "shadow": m.Shadow,
	} {
		if len(value) > maxName || !printable(value) {
			return &MessageError{Path: path, Message: "must be printable text of at most 255 bytes"}
		}
	}
	return nil
}

// CheckName returns a *MessageError if name is not a valid task name: proj.tasks.add.
func CheckName(name string) error {
	message := ""
	switch {
	case name == "":
		message = "must not be empty"
	case !printable(name) || utf8.RuneCountInString(name) > maxName:
		message = "must be printable text of at most 255 characters"
	case strings.TrimSpace(name) != name:
		message = "must not begin or end with a space"
	case strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
		message = "must be words with single dots between them, such as proj.tasks.add"
	default:
		return nil
	}
	return &MessageError{Path: "name", Message: message}
}

// printable reports whether s is UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

func (m Message) checkTimes(now time.Time) error {
	latest := now.AddDate(10, 0, 0) // far below what a datetime, and the timers of workers, can take
	switch {
	case m.ETA.After(latest):
		return &MessageError{Path: "eta", Message: "must lie within ten years"}
	case m.Expires.After(latest):
		return &MessageError{Path: "expires", Message: "must lie within ten years"}
	case !m.ETA.IsZero() && m.ETA.Year() < 1970:
		return &MessageError{Path: "eta", Message: "must not lie before 1970"}
	case !m.Expires.IsZero() && !m.Expires.After(now.Add(time.Millisecond)):
		return &MessageError{Path: "expires", Message: "must not have passed"}
	case !m.Expires.IsZero() && !m.Expires.After(m.ETA):
		return &MessageError{Path: "expires", Message: "must lie after eta"}
	}
	for path, seconds := range map[string]*float64{"hard": m.HardLimit, "soft": m.SoftLimit} {
		if seconds != nil && !(*seconds > 0 && *seconds <= maxLimit) {
			return &MessageError{Path: path, Message: "must be more than 0 s and at most 1,000,000 s"}
		}
	}
	if m.HardLimit != nil && m.SoftLimit != nil && *m.SoftLimit > *m.HardLimit {
		return &MessageError{Path: "soft", Message: "must not be above the hard limit"}
	}
	return nil
}
