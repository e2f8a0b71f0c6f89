package command

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/umbelhq/umbel/monitor/results"
)

// Abort marks a task as aborted in the result backend, for its code to see (celery.contrib.abortable), with an audit record.
// The task need not be known. The error is results.ErrNoAbort if the backend cannot mark tasks, or there is none.
func (s *Service) Abort(ctx context.Context, caller Caller, id string) error {
	if s.Results == nil {
		return results.ErrNoAbort
	}
	if serializer := s.resultSerializer(); serializer != jsonSerializer {
		return fmt.Errorf("%w: results are stored as %.50s", results.ErrNoAbort, serializer)
	}
	now := s.now()
	audit, err := s.audit(caller, now, "abort", "task "+id, nil)
	if err != nil {
		return err
	}
	if err := s.outbox.AppendAudit(ctx, audit); err != nil {
		return fmt.Errorf("write audit record: %w", err)
	}
	return results.Abort(ctx, s.Results, id, now)
}

// jsonSerializer is the only serializer of results that Umbel writes.
const jsonSerializer = "json"

// resultSerializer is the serializer of results by the settings that workers have reported, JSON unless one says otherwise.
func (s *Service) resultSerializer() string {
	for name := range s.workers() {
		var serializer string
		conf := s.Inspector.Peek(name).Conf["result_serializer"]
		if json.Unmarshal(conf, &serializer) == nil && serializer != "" && serializer != jsonSerializer {
			return serializer
		}
	}
	return jsonSerializer
}
