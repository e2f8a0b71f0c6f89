package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/monitor/celery"
)

// MaxRecord is the longest record that is read, in bytes.
const MaxRecord = 8 << 20

// record is what key-value backends store of a task, as JSON.
type record struct {
	Status    string          `json:"status"`
	Result    json.RawMessage `json:"result"`
	Traceback *string         `json:"traceback"`
	Children  json.RawMessage `json:"children"`
	DateDone  *string         `json:"date_done"`
	ParentID  *string         `json:"parent_id"`
	GroupID   *string         `json:"group_id"`
	Name      *string         `json:"name"`
	Args      json.RawMessage `json:"args"`
	Kwargs    json.RawMessage `json:"kwargs"`
	Worker    *string         `json:"worker"`
	Queue     *string         `json:"queue"`
	Retries   *int64          `json:"retries"`
}

// Parse reads the record of a task as key-value backends store it: JSON as Python writes it, or a pickle, whose
// objects are described (celery.Unpickle). Other serializers make the result Undecodable. The error says
// that b is a record of none of Celery's serializers.
func Parse(taskID string, b []byte) (Result, error) {
	if len(b) > MaxRecord {
		return TooLong(taskID, int64(len(b))), nil
	}
	text, whole, err := decode(b)
	switch {
	case errors.Is(err, celery.ErrPythonObject):
		return Result{TaskID: taskID, Undecodable: err.Error()}, nil
	case err != nil && (yamlRecord(b) || msgpackRecord(b)):
		return Result{TaskID: taskID, Status: statusOf(b), Undecodable: undecoded(b, "")}, nil
	case err != nil:
		return Result{}, fmt.Errorf("decode result: %w", err)
	}
	var m record
	if err := json.Unmarshal(text, &m); err != nil && !whole {
		return Result{TaskID: taskID, Undecodable: celery.ErrPythonObject.Error()}, nil
	} else if err != nil {
		return Result{}, fmt.Errorf("decode result: %w", err)
	}
	if m.Status == "" {
		return Result{}, errors.New("decode result: it has no status")
	}
	r := Result{
		TaskID: taskID, Status: m.Status, Traceback: orEmpty(m.Traceback), ParentID: orEmpty(m.ParentID), GroupID: orEmpty(m.GroupID),
		Name: orEmpty(m.Name), Args: known(m.Args), Kwargs: known(m.Kwargs),
		Worker: orEmpty(m.Worker), Queue: orEmpty(m.Queue), Retries: m.Retries,
	}
	r.setChildren(m.Children)
	if !whole {
		r.Args, r.Kwargs = nil, nil // described objects cannot be passed to a task again
	}
	r.DoneAt, r.NaiveTime = celery.ParseTime(orEmpty(m.DateDone)) // up to Celery 5.4 naive, and in UTC
	r.SetValue(m.Result)
	return r, nil
}

// TooLong is the result for a record that is longer than MaxRecord.
func TooLong(taskID string, size int64) Result {
	return Result{TaskID: taskID, Undecodable: fmt.Sprintf("record of %d bytes is too long to read", size)}
}

// decode converts JSON as Python writes it, or a pickle, into JSON. whole reports that no object is only
// described.
func decode(b []byte) (text json.RawMessage, whole bool, err error) {
	if pickled(b) {
		return celery.Unpickle(b)
	}
	text, err = celery.StrictJSON(b)
	return text, true, err
}

// pickled reports whether b begins as a pickle does, of protocol 2 or above.
func pickled(b []byte) bool { return len(b) > 1 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5 }

// SetValue sets Value, or Exception where the status says that value describes one.
func (r *Result) SetValue(value json.RawMessage) {
	switch r.Status {
	case "FAILURE", "RETRY", "REVOKED":
		if text, repr, ok := exception(value); ok {
			r.Exception, r.Repr = text, repr
			return
		}
	}
	r.Value = value
}

// Decode sets what is stored as bytes of a serializer: JSON or a pickle. mime is the content type, empty if it is not stored.
func (r *Result) Decode(b []byte, mime string) {
	if len(b) > MaxRecord {
		r.Undecodable = fmt.Sprintf("result of %d bytes is too long to read", len(b))
		return
	}
	text, _, err := decode(b)
	switch {
	case errors.Is(err, celery.ErrPythonObject):
		r.Undecodable = err.Error()
	case err != nil:
		r.Undecodable = undecoded(b, mime)
	default:
		r.SetValue(text)
	}
}

// Arguments returns what a serializer has stored of arguments, nil if that is not known in full.
func Arguments(b []byte) json.RawMessage {
	if len(b) > MaxRecord {
		return nil
	}
	text, whole, err := decode(b)
	if err != nil || !whole {
		return nil
	}
	return text
}

// unpickleable stands for an exception that Celery could not pickle.
const unpickleable = "celery.utils.serialization.UnpickleableExceptionWrapper"

// exception spells an exception as Celery stores it, or as it is described of a pickle: module.Type: arguments, and as
// Python's repr.
func exception(value json.RawMessage) (text, repr string, ok bool) {
	var e struct {
		Type    string            `json:"exc_type"`
		Message json.RawMessage   `json:"exc_message"`
		Module  string            `json:"exc_module"`
		Class   string            `json:"__class__"`
		Args    []json.RawMessage `json:"args"`
	}
	if json.Unmarshal(value, &e) != nil {
		return "", "", false
	}
	if e.Class == unpickleable && len(e.Args) > 2 { // module, type, arguments, text
		_, _ = json.Unmarshal(e.Args[0], &e.Module), json.Unmarshal(e.Args[1], &e.Type)
		e.Message = e.Args[2]
	} else if e.Class != "" {
		e.Type = e.Class
		e.Message, _ = json.Marshal(e.Args) // which it was
	}
	if e.Type == "" {
		return "", "", false
	}
	text = e.Type
	repr = e.Type[strings.LastIndexByte(e.Type, '.')+1:] + "(" + reprs(e.Message) + ")"
	if e.Module != "" && e.Module != "builtins" {
		text = e.Module + "." + text
	}
	if arguments := arguments(e.Message); arguments != "" {
		text += ": " + arguments
	}
	return text, repr, true
}

// arguments spells what an exception was made with: texts as they are, everything else as JSON.
func arguments(message json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(message, &list) != nil {
		list = []json.RawMessage{message}
	}
	var parts []string
	for _, m := range list {
		text := string(m)
		if strings.HasPrefix(text, `"`) {
			_ = json.Unmarshal(m, &text) // which it is
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

// Bounds of what is read of a task's children: how many are listed, how long their record may be, in bytes, and how deep
// groups of groups are followed. Each level is read anew.
const (
	maxChildren   = 1000
	maxChildBytes = 1 << 20
	maxChildLevel = 8
)

// setChildren sets the ids in Celery's result tuples: [[id, parent], [tuples of a group]].
func (r *Result) setChildren(b json.RawMessage) {
	if len(b) <= maxChildBytes {
		r.Children = r.childrenAt(b, 0)
	}
}

func (r *Result) childrenAt(b json.RawMessage, level int) []string {
	var tuples []json.RawMessage
	if level > maxChildLevel || json.Unmarshal(b, &tuples) != nil {
		return nil
	}
	var ids []string
	for _, t := range tuples {
		var pair []json.RawMessage
		if json.Unmarshal(t, &pair) != nil || len(pair) == 0 {
			continue
		}
		var id string
		var self []json.RawMessage
		if json.Unmarshal(pair[0], &self) == nil && len(self) > 0 {
			pair = append(self[:1:1], pair[1:]...)
		}
		if json.Unmarshal(pair[0], &id) == nil && id != "" {
			ids = append(ids, id)
		}
		if len(pair) > 1 {
			members := r.childrenAt(pair[1], level+1)
			if len(members) > 0 && id != "" {
				r.Groups = append(r.Groups, Group{ID: id, Members: members})
			}
			ids = append(ids, members...)
		}
		if len(ids) >= maxChildren {
			return ids[:maxChildren]
		}
	}
	return ids
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// known is b, nil where it is null.
func known(b json.RawMessage) json.RawMessage {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	return b
}
