package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/queues"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/auth"
)

// Queues are the queues of the broker, as last polled. Null means unknown.
type Queues struct {
	At       Time       `json:"at" doc:"When the queues were last polled; null if not yet. As of an instant, when their depths were recorded, once a minute; null if they were not."`
	Source   *string    `json:"source" doc:"How the depths were read." example:"management API"`
	Error    *string    `json:"error" doc:"Why the last poll failed."`
	Warnings []string   `json:"warnings" nullable:"false" doc:"Warnings about the queues as a whole; the broker and each queue have their own."`
	Broker   BrokerInfo `json:"broker"`
	Items    []Queue    `json:"items" nullable:"false"`
	Next     *string    `json:"next" doc:"Cursor of the next page; null on the last page."`
	Total    int        `json:"total" doc:"Number of queues on all pages."`
}

// BrokerInfo describes the broker. Null means unknown.
type BrokerInfo struct {
	Kind                     *string  `json:"kind" example:"RabbitMQ"`
	Version                  *string  `json:"version"`
	MemoryBytes              *int64   `json:"memory_bytes"`
	MemoryLimitBytes         *int64   `json:"memory_limit_bytes" doc:"maxmemory of Redis or the high watermark of RabbitMQ."`
	Clients                  *int64   `json:"clients" doc:"Number of connections."`
	VisibilityTimeoutSeconds *float64 `json:"visibility_timeout_seconds" doc:"Time after which Redis redelivers an unacknowledged message."`
	Warnings                 []string `json:"warnings" nullable:"false"`
}

// Queue is a queue. Null means unknown.
type Queue struct {
	Name            string      `json:"name"`
	Hidden          bool        `json:"hidden" doc:"Whether the queue is internal to Celery: a mailbox, a reply queue or an event queue."`
	Missing         bool        `json:"missing" doc:"Whether RabbitMQ has no queue of this name."`
	Error           *string     `json:"error" doc:"Why the queue could not be read."`
	Type            *string     `json:"type" example:"classic"`
	State           *string     `json:"state" example:"running"`
	Durable         *bool       `json:"durable"`
	MaxPriority     *int64      `json:"max_priority"`
	Ready           *int64      `json:"ready" doc:"Messages ready for delivery."`
	Unacked         *int64      `json:"unacked" doc:"Messages delivered but not acknowledged."`
	Consumers       *int64      `json:"consumers" doc:"Number of consumers according to the broker."`
	Workers         []string    `json:"workers" doc:"Workers consuming from the queue; null if not known."`
	InPerSecond     *float64    `json:"in_per_second" doc:"Messages per second over the last minute."`
	OutPerSecond    *float64    `json:"out_per_second" doc:"Messages per second over the last minute."`
	RatesFrom       *string     `json:"rates_from" doc:"Source of the rates." example:"broker"`
	AgeSeconds      *float64    `json:"age_seconds" doc:"Estimated age of the next message."`
	AgeAtLeast      *float64    `json:"age_at_least_seconds" doc:"Lower bound of the age, assuming first in, first out."`
	AgeAtMost       *float64    `json:"age_at_most_seconds"`
	DrainSeconds    *float64    `json:"drain_seconds" doc:"Estimated time to empty the queue at current rates; null if it is not shrinking."`
	Published       *int64      `json:"published" doc:"Messages published since the queue was created; the next three count from then, too."`
	Delivered       *int64      `json:"delivered"`
	Acked           *int64      `json:"acked"`
	Redelivered     *int64      `json:"redelivered"`
	Priorities      []QueueStep `json:"priorities" nullable:"false" doc:"Redis lists of the queue by priority, in the order of consumption."`
	OldestUnackedAt Time        `json:"oldest_unacked_at" doc:"Time of the oldest unacknowledged delivery."`
	RestoreAt       Time        `json:"restore_at" doc:"When the visibility timeout of that delivery expires."`
	Warnings        []string    `json:"warnings" nullable:"false"`
}

// QueueStep is the Redis list of one priority.
type QueueStep struct {
	Priority int   `json:"priority" doc:"On Redis, 0 is the highest priority."`
	Ready    int64 `json:"ready"`
}

// QueueDetail is a queue with its recent depths and waiting messages.
type QueueDetail struct {
	Queue
	Depths       []QueueDepth `json:"depths" nullable:"false" doc:"Depths of the last hour, oldest first."`
	Waiting      []Waiting    `json:"waiting" doc:"The next messages; null unless peek is given and the broker supports it."`
	WaitingError *string      `json:"waiting_error" doc:"Why the messages cannot be shown."`
}

// QueueDepth is the depth of a queue at one time.
type QueueDepth struct {
	At    Time  `json:"at"`
	Ready int64 `json:"ready"`
}

// Waiting is a message waiting in a queue. Null means unknown.
type Waiting struct {
	TaskID   *string `json:"task_id"`
	Name     *string `json:"name"`
	Args     *string `json:"args" doc:"Python repr, truncated."`
	Kwargs   *string `json:"kwargs" doc:"Python repr, truncated."`
	ETA      Time    `json:"eta"`
	Priority int     `json:"priority"`
	Bytes    int     `json:"bytes" doc:"Size of the body."`
	Error    *string `json:"error" doc:"Why the message cannot be decoded."`
}

// PurgeBody names a queue to purge.
type PurgeBody struct {
	_ struct{} `additionalProperties:"false"`

	Queue   string `json:"queue" minLength:"1"`
	Confirm string `json:"confirm,omitempty" doc:"The queue's name again; not needed for a dry run."`
}

type purgeInput struct {
	SendOptions
	Body PurgeBody
}

type listQueues struct {
	NamePage
	Hidden bool   `query:"hidden" doc:"Include queues internal to Celery."`
	Sort   string `query:"sort" maxLength:"64" default:"name" doc:"One of name, ready, unacked, consumers, in, out, age and drain; with a leading - for descending order. Unknown values come last." example:"-ready"`
}

type queueInput struct {
	Name string `path:"name" doc:"Queue name." example:"celery"`
	Peek int    `query:"peek" minimum:"0" maximum:"100" doc:"Number of waiting messages to return."`
}

func fromBrokerInfo(i broker.Info) BrokerInfo {
	d := BrokerInfo{
		Kind: text(i.Kind), Version: text(i.Version), MemoryBytes: i.Memory, MemoryLimitBytes: i.MemoryLimit,
		Clients: i.Clients, Warnings: append([]string{}, i.Warnings...),
	}
	d.VisibilityTimeoutSeconds = inSeconds(i.VisibilityTimeout)
	return d
}

// inSeconds returns d in seconds, nil if d is nil.
func inSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

func fromQueue(q queues.Queue) Queue {
	d := Queue{
		Name: q.Name, Hidden: q.Hidden, Missing: q.Missing, Error: text(q.Error), Type: text(q.Type), State: text(q.State),
		Durable: q.Durable, MaxPriority: q.MaxPriority, Ready: q.Ready, Unacked: q.Unacked, Consumers: q.Consumers,
		InPerSecond: number(q.InRate), OutPerSecond: number(q.OutRate), RatesFrom: text(q.RatesFrom),
		AgeSeconds: inSeconds(q.Age), AgeAtLeast: inSeconds(q.AgeAtLeast), AgeAtMost: inSeconds(q.AgeAtMost),
		DrainSeconds: inSeconds(q.DrainTime), Warnings: append([]string{}, q.Warnings...),
		Published: q.Published, Delivered: q.Delivered, Acked: q.Acked, Redelivered: q.Redelivered,
		Priorities: mapSlice(q.Steps, func(s broker.Step) QueueStep { return QueueStep{Priority: s.Priority, Ready: s.Ready} }),
	}
	if q.WorkersKnown {
		d.Workers = append([]string{}, q.Workers...)
	}
	if q.OldestUnacked != nil {
		d.OldestUnackedAt = timeOf(*q.OldestUnacked)
	}
	if q.RedeliveredAt != nil {
		d.RestoreAt = timeOf(*q.RedeliveredAt)
	}
	return d
}

func fromWaiting(m command.WaitingMessage) Waiting {
	d := Waiting{
		TaskID: text(m.ID), Name: text(m.Name), Args: &m.Args, Kwargs: &m.Kwargs, ETA: timeOf(m.ETA), Priority: m.Priority, Bytes: m.Bytes,
		Error: text(m.Error),
	}
	if d.Error != nil {
		d.Args, d.Kwargs = nil, nil
	}
	return d
}

// registerQueues adds the operations on queues.
func (a *api) registerQueues(h huma.API) {
	if a.commands == nil && a.then == nil {
		return
	}
	huma.Register(h, operation(h, auth.View, "list-queues", "/queues", "List queues"), a.queues)
	huma.Register(h, operation(h, auth.View, "get-queue", "/queues/{name}", "Get a queue", notFound), a.queue)
	service := a.service()
	if service == nil {
		return
	}
	purge := postSend(h, auth.PurgeQueue, "purge-queue", "/purge", "Purge a queue", notFound)
	registerSend(a, h, purge, sendSteps[purgeInput, PurgeBody, Preview]{
		request: func(_ context.Context, in *purgeInput) (PurgeBody, error) { return in.Body, nil },
		preview: func(ctx context.Context, b PurgeBody) (Preview, error) {
			p, err := service.PreviewPurge(ctx, b.Queue)
			return fromPreview(p), err
		},
		send: func(ctx context.Context, by command.Caller, b PurgeBody) (command.Receipt, error) {
			return service.Purge(ctx, by, b.Queue, b.Confirm)
		},
	})
}

// snapshot returns the queues as they were polled last, or as they were at the instant.
func (a *api) snapshot(ctx context.Context) (queues.Snapshot, error) {
	if a.then != nil {
		return a.then.Queues(ctx)
	}
	return a.commands.Queues.Snapshot(), nil
}

func (a *api) queues(ctx context.Context, r *listQueues) (*response[Queues], error) {
	if err := checkSort(r.Sort, queues.SortKeys()); err != nil {
		return nil, err
	}
	s, err := a.snapshot(ctx)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	body := Queues{
		At: timeOf(s.At), Source: text(s.Source), Error: text(s.Error), Warnings: append([]string{}, s.Warnings...),
		Broker: fromBrokerInfo(s.Broker),
	}
	list := slices.DeleteFunc(slices.Clone(s.Queues), func(q queues.Queue) bool { return q.Hidden && !r.Hidden })
	pages := pageByName[queues.Queue]
	if r.Sort != "" && r.Sort != "name" {
		queues.Sort(list, r.Sort)
		pages = pageInOrder
	}
	page, next, err := pages(r.NamePage, list, func(q queues.Queue) string { return q.Name })
	if err != nil {
		return nil, err
	}
	body.Items, body.Next, body.Total = mapSlice(page, fromQueue), next, len(list)
	return &response[Queues]{body}, nil
}

func (a *api) queue(ctx context.Context, r *queueInput) (*response[QueueDetail], error) {
	s, err := a.snapshot(ctx)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	i := slices.IndexFunc(s.Queues, func(q queues.Queue) bool { return q.Name == r.Name })
	if i < 0 {
		names := mapSlice(s.Queues, func(q queues.Queue) string { return q.Name })
		p := problem(http.StatusNotFound, "No queue named "+strconv.Quote(shorten(r.Name))+".")
		p.Nearest = lang.Nearest(r.Name, names)
		return nil, p
	}
	d := QueueDetail{Queue: fromQueue(s.Queues[i]), Depths: mapSlice(s.Queues[i].Depths, func(p queues.Point) QueueDepth {
		return QueueDepth{At: timeOf(p.At), Ready: p.Ready}
	})}
	if r.Peek == 0 {
		return &response[QueueDetail]{d}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	waiting := command.WaitingMessages{Error: auth.Withheld().Message}
	switch {
	case a.then != nil:
		waiting.Error = "Contents of queues are not kept."
	case !a.hides:
		waiting = a.commands.Peek(ctx, r.Name, r.Peek)
	}
	d.WaitingError = text(waiting.Error)
	if d.WaitingError == nil {
		d.Waiting = mapSlice(waiting.List, fromWaiting)
	}
	return &response[QueueDetail]{d}, nil
}
