package outboxwatch

import (
	"context"
	"encoding/json"
)

// Rows returns a page of the outbox of a name, with secrets masked. The error is ErrUnknownSource or an *Error.
func (w *Watcher) Rows(ctx context.Context, name string, r RowRequest) (RowPage, error) {
	s, err := w.Source(name)
	if err != nil {
		return RowPage{}, err
	}
	page, err := s.Rows(ctx, r)
	if err != nil {
		return RowPage{}, asError(err)
	}
	list := make([]*Payload, len(page.Rows))
	for i := range page.Rows {
		row := &page.Rows[i]
		row.Args, row.Kwargs, _ = w.redactor.Arguments(row.TaskName, row.Args, row.Kwargs)
		list[i] = &row.Payload
	}
	w.mask(list)
	return page, nil
}

// DeadLetters returns a page of the dead letters of the outbox of a name, with secrets masked. The error is
// ErrUnknownSource or an *Error.
func (w *Watcher) DeadLetters(ctx context.Context, name string, r DeadLetterRequest) (DeadLetterPage, error) {
	s, err := w.Source(name)
	if err != nil {
		return DeadLetterPage{}, err
	}
	page, err := s.DeadLetters(ctx, r)
	if err != nil {
		return DeadLetterPage{}, asError(err)
	}
	list := make([]*Payload, len(page.DeadLetters))
	for i := range page.DeadLetters {
		l := &page.DeadLetters[i]
		l.Args, l.Kwargs, _ = w.redactor.Arguments(l.TaskName, l.Args, l.Kwargs)
		list[i] = &l.Payload
	}
	w.mask(list)
	return page, nil
}

// mask masks secrets in payloads, and leaves out the arguments of signatures in options: only the application knows how
// to redact them.
func (w *Watcher) mask(list []*Payload) {
	all := make([][3]json.RawMessage, len(list))
	for i, p := range list {
		p.Options = withoutSignatureArguments(p.Options)
		all[i] = [3]json.RawMessage{p.Args, p.Kwargs, p.Options}
	}
	b, err := json.Marshal(all)
	if err == nil {
		clear(all)
		err = json.Unmarshal(w.redactor.Settings(b), &all)
	}
	for i, p := range list {
		if err != nil { // one of them is not JSON
			p.Args, p.Kwargs, p.Options = nil, nil, nil
			continue
		}
		p.Args, p.Kwargs, p.Options = present(all[i][0]), present(all[i][1]), present(all[i][2])
	}
}

// present returns nil for null.
func present(v json.RawMessage) json.RawMessage {
	if string(v) == "null" {
		return nil
	}
	return v
}

// hidden stands for arguments that are not shown.
const hidden = "********"

// withoutSignatureArguments hides args and kwargs of the signatures in options, at any depth.
func withoutSignatureArguments(options json.RawMessage) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(options, &o) != nil {
		return options
	}
	changed := false
	for _, key := range [...]string{"link", "link_error", "chain", "chord"} {
		if v, ok := o[key]; ok && string(v) != "null" {
			o[key], changed = hideArguments(v), true
		}
	}
	if !changed {
		return options
	}
	b, err := json.Marshal(o)
	if err != nil {
		return nil
	}
	return b
}

// hideArguments hides the arguments of a signature or a list of them. Nested ones are hidden whole.
func hideArguments(v json.RawMessage) json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(v, &list) == nil {
		for i := range list {
			list[i] = hideArguments(list[i])
		}
		b, _ := json.Marshal(list)
		return b
	}
	var signature struct {
		Task    string `json:"task"`
		Args    string `json:"args"`
		Kwargs  string `json:"kwargs"`
		Options string `json:"options"`
	}
	_ = json.Unmarshal(v, &struct {
		Task *string `json:"task"`
	}{&signature.Task})
	signature.Args, signature.Kwargs, signature.Options = hidden, hidden, hidden
	b, _ := json.Marshal(signature)
	return b
}
