package results

import (
	"bytes"
	"context"
	"log/slog"
)

// WithArguments returns a backend that calls learn with the arguments of each result that it reads, where they are stored
// (result_extended) and surely whole. Errors of learn are logged.
func WithArguments(b Backend, learn func(ctx context.Context, taskID string, args, kwargs []byte) error, log *slog.Logger) Backend {
	return learningBackend{b, learn, log}
}

type learningBackend struct {
	Backend

	learn func(ctx context.Context, taskID string, args, kwargs []byte) error
	log   *slog.Logger
}

func (b learningBackend) unwrap() Backend { return b.Backend }

// Result returns the record of a task.
func (b learningBackend) Result(ctx context.Context, taskID string) (Result, error) {
	r, err := b.Backend.Result(ctx, taskID)
	if err == nil && whole(r.Args, "[") && whole(r.Kwargs, "{") {
		if err := b.learn(ctx, taskID, r.Args, r.Kwargs); err != nil && ctx.Err() == nil {
			b.log.WarnContext(ctx, "arguments of a result not saved", "error", err)
		}
	}
	return r, err
}

// whole reports whether JSON begins as it should and was surely not altered when it was encoded: NaN and infinities become
// null then, and bytes that are not UTF-8 become U+FFFD.
func whole(arguments []byte, begin string) bool {
	return bytes.HasPrefix(arguments, []byte(begin)) && !bytes.Contains(arguments, []byte("null")) &&
		!bytes.Contains(arguments, []byte("\uFFFD")) && !bytes.Contains(bytes.ToLower(arguments), []byte(`\ufffd`))
}
