package results

import (
	"context"

	"github.com/umbelhq/umbel/monitor/redact"
)

// Redact returns a backend that takes secrets out of the results that it reads.
func Redact(b Backend, r *redact.Redactor) Backend { return redactingBackend{b, r} }

type redactingBackend struct {
	Backend

	redactor *redact.Redactor
}

// Result returns the record of a task.
func (b redactingBackend) Result(ctx context.Context, taskID string) (Result, error) {
	r, err := b.Backend.Result(ctx, taskID)
	if err != nil {
		return r, err
	}
	r.Value = b.redactor.Result(r.Name, r.Value)
	r.Args, r.Kwargs, _ = b.redactor.Arguments(r.Name, r.Args, r.Kwargs)
	shown := b.redactor.Task(r.Name, redact.Call{Exception: r.Exception, Traceback: r.Traceback})
	r.Exception, r.Traceback = shown.Exception, shown.Traceback
	r.Repr = b.redactor.Task(r.Name, redact.Call{Exception: r.Repr}).Exception
	return r, nil
}

func (b redactingBackend) unwrap() Backend { return b.Backend }
