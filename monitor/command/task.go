package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/history"
)

// defaultQueue is Celery's default.
const defaultQueue = "celery"

// taskPlan is a checked TaskRequest.
type taskPlan struct {
	payload  taskPayload
	original *Original // nil if it retries none
	warnings warnings
}

// PreviewTask checks a request and returns what it would do.
func (s *Service) PreviewTask(ctx context.Context, o TaskRequest) (Preview, error) {
	p, err := s.planTask(ctx, o)
	if err != nil {
		return Preview{}, err
	}
	return Preview{Summary: p.payload.summary(), Targets: []string{"queue " + p.payload.Queue}, Warnings: p.warnings}, nil
}

// Publish enqueues the publication of a task.
func (s *Service) Publish(ctx context.Context, caller Caller, o TaskRequest) (Receipt, error) {
	d := draft{action: "publish", identity: written{o, string(o.Args), string(o.Kwargs)}}
	if o.RetryOf != "" {
		d.action = "retry"
	}
	return s.submit(ctx, caller, d, func(d *draft) error {
		p, err := s.planTask(ctx, o)
		if err != nil {
			return err
		}
		c, err := p.payload.command()
		if latest := s.now().Add(o.SendWithin); o.SendWithin > 0 && (c.ExpiresAt.IsZero() || latest.Before(c.ExpiresAt)) {
			c.ExpiresAt = latest
		}
		d.commands, d.target, d.detail, d.warnings = []history.Command{c}, c.Target, p.record(s.redactor), p.warnings
		return err
	})
}

// written is a request with its arguments as text, which may not be valid JSON.
type written struct {
	TaskRequest

	Args, Kwargs string
}

// planTask checks a request against what workers have reported.
func (s *Service) planTask(ctx context.Context, o TaskRequest) (p taskPlan, err error) {
	if o.RetryOf != "" && o.Original == nil {
		o.Original = s.original(ctx, o.RetryOf)
	}
	p.original = o.Original
	if p.payload, err = s.payload(ctx, o); err != nil {
		return p, err
	}
	if _, err = p.payload.message().Publishing(s.now()); err != nil {
		return p, invalidMessage(err)
	}
	if err = s.checkID(ctx, o, &p); err != nil {
		return p, err
	}
	if o.Force && o.NoWarnings {
		return p, nil
	}
	topology := s.Inspector.Topology(ctx)
	problems := placement(topology, p.payload.Name, p.payload.Queue)
	if stats, ok := s.queueStats(ctx, p.payload.Queue); ok {
		problems = append(problems, missing(stats, topology, p.payload.Queue)...)
		p.warnings = append(p.warnings, brokerWarnings(stats, p.payload, s.now())...)
	}
	for _, problem := range problems {
		if problem.err != nil && !o.Force {
			return p, problem.err
		}
		p.warnings = append(p.warnings, problem.warning)
	}
	return p, nil
}

// payload returns the message of a request.
func (s *Service) payload(ctx context.Context, o TaskRequest) (taskPayload, error) {
	p := taskPayload{
		Queue: o.Queue, ID: o.ID, Name: o.Name, Args: o.Args, Kwargs: o.Kwargs, RetryOf: o.RetryOf,
		Priority: o.Priority, Hard: o.Hard, Soft: o.Soft, Origin: s.origin, Serializer: o.Serializer,
	}
	if p.Queue == "" {
		p.Queue = defaultQueue
	}
	if p.Serializer == "" {
		p.Serializer = s.serializerOf(p.Name)
	}
	if p.ID == "" {
		p.ID = uuid.NewString()
	}
	if len(p.Args) == 0 {
		p.Args = []byte("[]")
	}
	if len(p.Kwargs) == 0 {
		p.Kwargs = []byte("{}")
	}
	switch {
	case o.RetryOf != "" && len(o.Args) == 0:
		return p, &Error{Field: "args", Message: "args is required: the arguments of the retried task are not guessed"}
	case o.RetryOf != "" && len(o.Kwargs) == 0:
		return p, &Error{Field: "kwargs", Message: "kwargs is required: the arguments of the retried task are not guessed"}
	case o.Countdown > 0 && !o.ETA.IsZero():
		return p, &Error{Field: "eta", Message: "eta and countdown cannot be combined"}
	case o.Countdown > 0:
		p.ETA = new(s.now().Add(o.Countdown))
	case !o.ETA.IsZero():
		p.ETA = &o.ETA
	}
	if !o.Expires.IsZero() {
		p.Expires = &o.Expires
	}
	p.Root, p.Parent = o.Root, o.Parent
	if o.RetryOf != "" {
		p.Parent, p.Root = o.RetryOf, o.RetryOf
		if t, err := s.tasks.Task(ctx, o.RetryOf); err == nil && t.RootID != nil && *t.RootID != "" {
			p.Root = *t.RootID
		}
	}
	if original := o.Original; original != nil {
		p.Shadow, p.Headers, p.Embed = original.Shadow, original.Headers, original.Embed
	}
	p.Shadow = cmp.Or(o.Shadow, p.Shadow)
	if len(o.Headers) > 0 {
		p.Headers = o.Headers
	}
	if len(o.Embed) > 0 {
		p.Embed = o.Embed
	}
	return p, checkQueue(p.Queue)
}

// checkQueue checks the name of a task queue.
func checkQueue(name string) error {
	message := ""
	switch {
	case name == "":
		message = "queue must not be empty"
	case len(name) > 255 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }):
		message = "queue must be printable text of at most 255 bytes"
	case strings.HasSuffix(name, ".pidbox") || strings.HasPrefix(name, "celeryev"):
		message = fmt.Sprintf("queue %s is not a task queue", name)
	default:
		return nil
	}
	return &Error{Field: "queue", Message: message}
}

// invalidMessage turns a MessageError into an Error.
func invalidMessage(err error) error {
	if wrong, ok := errors.AsType[*celery.MessageError](err); ok {
		return &Error{Field: wrong.Path, Message: wrong.Path + " " + wrong.Message}
	}
	return err
}

// checkID refuses an id that was used before, and adds warnings about the retried task.
func (s *Service) checkID(ctx context.Context, o TaskRequest, p *taskPlan) error {
	if o.ID != "" {
		switch _, err := s.tasks.Task(ctx, o.ID); {
		case err == nil && !o.Force:
			return &Error{Kind: Conflict, Field: "id", Message: fmt.Sprintf("task %s already exists", o.ID)}
		case err == nil:
			p.warnings.warn(true, "A task with this ID already exists.")
		case !errors.Is(err, history.ErrNotFound):
			return fmt.Errorf("look for task %s: %w", o.ID, err)
		}
	}
	if o.RetryOf == "" {
		return nil
	}
	switch t, err := s.tasks.Task(ctx, o.RetryOf); {
	case err != nil && !errors.Is(err, history.ErrNotFound):
		return fmt.Errorf("look for task %s: %w", o.RetryOf, err)
	case err == nil && !t.State.Final():
		p.warnings.warn(true, "Task %s is not finished (%s): it may run twice.", t.ID, t.State)
	case err == nil:
		if err := s.warnRetried(ctx, &t, &p.warnings); err != nil {
			return err
		}
	}
	p.warnings = append(p.warnings, o.Original.warnings(o)...)
	return nil
}

// command returns the payload as a command.
func (p taskPayload) command() (history.Command, error) {
	c, err := newCommand(kindTask, "queue "+p.Queue, p)
	c.Target, c.Summary, c.TaskID = "queue "+p.Queue, p.summary(), p.ID
	if p.Expires != nil {
		c.ExpiresAt = *p.Expires
	}
	return c, err
}

// summary describes what is published.
func (p taskPayload) summary() string {
	text := "Run " + p.Name
	if p.RetryOf != "" {
		text = fmt.Sprintf("Run %s again (%s)", p.Name, p.RetryOf)
	}
	if p.ETA != nil {
		text += p.ETA.UTC().Format(" after 2006-01-02 15:04:05 MST")
	}
	return text
}
