package command

import (
	"encoding/json"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/state"
)

// Reasons not to retry a task, and what helps.
const (
	notKnown   = "arguments not known"
	notCertain = "arguments cut short, or not known for certain"
	notInJSON  = "an argument is a Decimal, UUID or date, which JSON has no form of"
	noQueue    = "queue not known"

	storeArguments = "From now on: store arguments with the results (result_extended = True and a result backend that Umbel reads), " +
		"or publish with argsrepr and kwargsrepr that show all of them. Of these tasks: type the arguments in."
)

// remedy returns what helps where a reason keeps tasks from being retried.
func remedy(reason string) string {
	switch reason {
	case notKnown, notCertain:
		return storeArguments
	case notInJSON:
		return "Send these values as Celery 5.3 and newer encode them. From now on: store arguments with the results (result_extended = True)."
	case noQueue:
		return "From now on: task_send_sent_event = True. Of these tasks: retry one at a time and choose the queue."
	}
	return ""
}

// complete sets the arguments of a retry that no source knows in full, as the request allows. It returns why it cannot.
func (p *bulkPlan) complete(t *state.Task, o *TaskRequest) string {
	args, why := p.known(t, t.Args, p.request.Args)
	kwargs, second := p.known(t, t.Kwargs, p.request.Kwargs)
	if why == "" || why == notInJSON && second != "" {
		why = second
	}
	switch {
	case why != "":
		return why
	case !o.setArguments(args, kwargs):
		return notCertain
	}
	if o.Original.Source = fromEvent; p.request.Objects {
		o.Serializer = celery.JSON
	}
	return ""
}

// known returns the part of a task's arguments that a repr shows, else what was typed in for all.
func (p *bulkPlan) known(t *state.Task, repr *string, typed json.RawMessage) (part json.RawMessage, why string) {
	why = notKnown
	if repr != nil && !t.Truncated {
		if part, ok := celery.ParseRepr(*repr); ok {
			return part, ""
		}
		part, ok := celery.ParseReprObjects(*repr)
		if ok && p.request.Objects {
			return part, ""
		}
		if why = notCertain; ok {
			why = notInJSON
		}
	} else if repr != nil {
		why = notCertain
	}
	if typed != nil {
		return typed, ""
	}
	return nil, why
}

// checkTyped checks the arguments that were typed in for all.
func (o *BulkRequest) checkTyped() error {
	var list []any
	var members map[string]any
	if o.Args != nil && (json.Unmarshal(o.Args, &list) != nil || list == nil) {
		return &Error{Field: "args", Message: "args must be a JSON array"}
	}
	if o.Kwargs != nil && (json.Unmarshal(o.Kwargs, &members) != nil || members == nil) {
		return &Error{Field: "kwargs", Message: "kwargs must be a JSON object"}
	}
	if len(o.Args)+len(o.Kwargs) > celery.MaxArguments {
		return &Error{Field: "args", Message: "args and kwargs are too long"}
	}
	return nil
}
