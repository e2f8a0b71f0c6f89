package payload

import (
	"slices"

	"github.com/umbelhq/umbel/monitor/outboxwatch"
)

// DeadLetters returns dead letters with the types of the exceptions that are their reasons: the rest may quote arguments.
func DeadLetters(list []outboxwatch.DeadLetter) []outboxwatch.DeadLetter {
	list = slices.Clone(list)
	for i := range list {
		list[i].Reason, list[i].Payload = exceptionType(list[i].Reason), outboxwatch.Payload{}
	}
	return list
}

// Trace returns t with the type of the exception that is its reason.
func Trace(t outboxwatch.Trace) outboxwatch.Trace {
	t.Reason = exceptionType(t.Reason)
	return t
}

// AppOutbox returns o without the reasons of its dead letters.
func AppOutbox(o outboxwatch.Outbox) outboxwatch.Outbox {
	o.Stats.Reasons = nil
	return o
}
