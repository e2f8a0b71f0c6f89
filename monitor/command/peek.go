package command

import (
	"context"
	"errors"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/remote"
)

// WaitingMessage is a message that waits in a queue. Empty and zero is unknown.
type WaitingMessage struct {
	ID, Name     string
	Args, Kwargs string // Python reprs, truncated
	ETA          time.Time
	Priority     int
	Bytes        int    // size of the body
	Error        string // why it cannot be decoded
}

// WaitingMessages are the next messages of a queue.
type WaitingMessages struct {
	List  []WaitingMessage
	Error string // why they cannot be shown, as a sentence
}

// Peek returns at most limit of the next messages of a queue, and leaves them there.
func (s *Service) Peek(ctx context.Context, queue string, limit int) WaitingMessages {
	found, err := s.Client.Peek(ctx, queue, limit)
	switch {
	case errors.Is(err, broker.ErrUnsupported):
		return WaitingMessages{Error: "This broker cannot show waiting messages without reordering them."}
	case errors.Is(err, remote.ErrUnavailable):
		return WaitingMessages{Error: "The broker is unavailable."}
	case err != nil:
		s.log.WarnContext(ctx, "peek at queue", "queue", queue, "error", err)
		return WaitingMessages{Error: "The waiting messages could not be read; see Umbel's log."}
	}
	list := make([]WaitingMessage, len(found))
	for i, p := range found {
		m, err := celery.ParseMessage(p)
		list[i] = WaitingMessage{ID: m.ID, Name: m.Name, ETA: m.ETA, Priority: int(p.Priority), Bytes: len(p.Body)}
		if err != nil {
			list[i].Error = err.Error()
			continue
		}
		args, kwargs, _ := s.redactor.Arguments(m.Name, m.Args, m.Kwargs)
		list[i].Args, list[i].Kwargs = celery.Repr(args), celery.Repr(kwargs)
	}
	return WaitingMessages{List: list}
}
