package templates_test

import (
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/broker"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/command/relay"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/queues"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/causality"
	"github.com/umbelhq/umbel/templates"
)

func outboxScenes() map[string]scene {
	return map[string]scene{
		"outbox":      {layout(templates.SectionOutbox, "/outbox"), outbox()},
		"outbox-dead": {held(dark(layout(templates.SectionOutbox, "/outbox?state=dead"))), outboxDead()},
		"outbox-none": {layout(templates.SectionOutbox, "/outbox"), templates.Outbox{ByRequest: true, States: shownStates()}},
		"outbox-unreadable": {layout(templates.SectionOutbox, "/outbox?kind=task"), templates.Outbox{
			States: shownStates(), State: "other", Unreadable: true,
			Conditions: []templates.Condition{{Label: "kind", Value: "task", Without: "/ops/outbox"}},
			Query:      templates.CommandQuery{States: "dead", Kind: "task", Worker: evil, Actor: evil, Kinds: []string{"control", "task"}},
		}},
		"request":         {layout(templates.SectionOutbox, "/outbox/17"), request()},
		"request-bulk":    {layout(templates.SectionOutbox, "/outbox/20"), requestBulk()},
		"request-hostile": {layout(templates.SectionOutbox, "/outbox/99"), requestHostile()},
		"audit":           {layout(templates.SectionOutbox, "/outbox/audit"), audit()},
		"audit-broken":    {layout(templates.SectionOutbox, "/outbox/audit"), templates.Audit{Tampered: 2}},
		"audit-unknown":   {layout(templates.SectionOutbox, "/outbox/audit"), templates.Audit{}},
	}
}

// held is the layout while the broker is away from what is to be sent.
func held(c templates.Layout) templates.Layout {
	c.Outbox = templates.OutboxAlert{
		Relay:   relay.Status{BreakerOpen: true, BreakerUntil: at(2 * second), LastError: "dial tcp: connection refused"},
		Pending: 12, Dead: 3,
	}
	return c
}

func shownStates() []templates.StateOption {
	return []templates.StateOption{
		{Label: "Requests", Href: "/ops/outbox"},
		{Value: "dead", Label: "Dead letters", Href: "/ops/outbox?state=dead", Count: 2},
	}
}

// commands has one in each state.
func commands() []history.Command {
	grow := history.Command{
		ID: 17, RequestID: 17, Kind: "control", Target: "every worker", Summary: "Grow the pool by 2", Actor: "ann",
		CreatedAt: at(0), DueAt: at(0), ExpiresAt: at(60 * second),
		Replies: []history.Reply{
			{Node: "celery@a", At: at(second), Text: "pool will grow", OK: true},
			{Node: "celery@b", At: at(second), Text: "pool grow not supported"},
		},
		Expected: []string{"celery@a", "celery@b", "celery@c", "celery@d", "celery@e", "celery@f"},
	}
	in := func(id int64, state history.CommandState, change func(c *history.Command)) history.Command {
		c := grow
		c.ID, c.State = id, state
		if change != nil {
			change(&c)
		}
		return c
	}
	unasked := func(c *history.Command) { c.Replies, c.Expected = nil, c.Expected[2:] }
	nobody := func(c *history.Command) { c.Replies, c.Expected = nil, nil }
	return []history.Command{
		in(17, "no_reply", func(c *history.Command) { c.SentAt, c.DoneAt = at(second), at(3*second) }),
		in(18, "pending", nobody),
		in(19, "pending", func(c *history.Command) {
			nobody(c)
			c.Kind, c.ExpiresAt, c.DueAt = "task", time.Time{}, at(4*second)
			c.Summary, c.Target, c.TaskID = "Publish mail.send", "queue mail", retried().ID
			c.Attempts, c.Deferrals, c.LastError = 2, 3, "no such queue: mail"
		}),
		in(20, "pending", func(c *history.Command) {
			nobody(c)
			c.DueAt = at(9 * second)
		}),
		in(21, "in_flight", unasked),
		in(22, "sent", func(c *history.Command) { c.SentAt = at(second) }),
		in(23, "done", func(c *history.Command) { c.Expected, c.SentAt, c.DoneAt = c.Expected[:2], at(second), at(2*second) }),
		in(24, "done", nobody),
		in(25, "dead", func(c *history.Command) {
			nobody(c)
			c.Attempts, c.LastError = 8, "no such queue: mail"
		}),
		in(26, "expired", unasked),
		in(27, "discarded", unasked),
		in(28, "of tomorrow", func(c *history.Command) { c.Actor, c.CreatedAt = "", time.Time{} }),
	}
}

// at is a moment in µs after noon.
func at(micros int64) time.Time { return time.UnixMicro(noon + micros) }

func outbox() templates.Outbox {
	return templates.Outbox{
		Stats: history.OutboxStats{
			States:        map[history.CommandState]int{"pending": 3, "in_flight": 1, "sent": 1, "done": 2_000, "dead": 2},
			OldestPending: at(-90 * second), OtherSchema: 1, TopErrors: []history.ErrorCount{{Error: "no such queue: mail", N: 2}},
		},
		Relay: &relay.Status{Sent: 12_345}, States: shownStates(), ByRequest: true, Requests: requests(), Newest: "/ops/outbox", Older: "/ops/outbox?cursor=3",
	}
}

func outboxDead() templates.Outbox {
	v := outbox()
	v.State, v.ByRequest, v.Commands = "dead", false, commands()[8:9]
	v.Relay = &relay.Status{BreakerOpen: true, BreakerUntil: at(2 * second), LastError: "dial tcp: connection refused"}
	return v
}

// requests has one of tasks, one of everything, single ones, and a hostile one.
func requests() []history.RequestSummary {
	list := []history.RequestSummary{
		{
			First: commands()[2], States: map[history.CommandState]int{"done": 47, "dead": 1},
			Tasks: map[state.State]int{state.Success: 41, state.Failure: 4, evil: 1},
		},
		{
			First: commands()[0], Mixed: true, Spread: true, Refused: 20, States: map[history.CommandState]int{
				"pending": 250, "in_flight": 50, "sent": 3, "done": 600, "no_reply": 90, "dead": 4, "expired": 2, "discarded": 1,
			},
		},
	}
	for _, c := range commands() {
		c.RequestID = c.ID
		list = append(list, history.RequestSummary{First: c, Refused: c.Refused(), States: map[history.CommandState]int{c.State: 1}})
	}
	list[0].First.RequestID, list[1].First.RequestID = 101, 102
	return append(list, requestHostile().RequestSummary)
}

func request() templates.Request {
	return templates.Request{
		RequestSummary: requests()[2], List: commands()[:1],
		Effect: &command.Effect{Text: "no worker replied", Grade: causality.Proved},
	}
}

func requestBulk() templates.Request {
	return templates.Request{
		RequestSummary: requests()[1], List: commands(), Older: "/ops/outbox/17?cursor=18",
	}
}

func requestHostile() templates.Request {
	c := history.Command{
		ID: 99, RequestID: 99, Kind: evil, State: "dead", Target: evil, Summary: evil, TaskID: evil, Actor: evil,
		LastError: evil + strings.Repeat("x", 5_000), Replies: []history.Reply{{Node: evil, At: at(0), Text: evil}}, Expected: []string{evil, evil + "2"},
	}
	return templates.Request{
		RequestSummary: history.RequestSummary{First: c, Refused: 1, States: map[history.CommandState]int{"dead": 1}}, List: []history.Command{c},
	}
}

func audit() templates.Audit {
	return templates.Audit{
		Verified: true, Export: "/ops/api/v1/audit/export?kind=action", Filter: templates.AuditFilter{Kind: "action", Actor: evil},
		Newest: "/ops/outbox/audit", Older: "/ops/outbox/audit?cursor=2",
		Records: []history.AuditRecord{
			{
				ID: 3, At: at(0), Kind: "action", Outcome: "accepted", Actor: "ann", Method: "oidc", Role: "operator", RemoteAddr: "10.0.0.7",
				Endpoint: "/act/task", Action: "revoke", Target: "task 3f2a", FirstCommand: 17, Commands: 1,
				Detail: `{"signal":"SIGKILL","terminate":true}`, Hash: "6d1f0f6c3a0b2b6f0a9f6d1f0f6c3a0b2b6f0a9f6d1f0f6c3a0b2b6f0a9f0a9f",
			},
			{ID: 4, At: at(-second), Kind: "login", Outcome: "refused", Action: "login", RemoteAddr: "10.0.0.8", Detail: `{"refused":951}`},
			{ID: 2, At: at(-second), Action: "requeue", Target: "3 commands", Hash: "77"},
			{ID: 1, At: at(-2 * second), Actor: evil, RemoteAddr: evil, Method: evil, Role: evil, Endpoint: evil, Outcome: evil, Action: evil, Target: evil, Detail: evil, Hash: evil},
		},
	}
}

func queueScenes() map[string]scene {
	all := layout(templates.SectionQueues, "/queues")
	one := layout(templates.SectionQueues, "/queues/mail")
	return map[string]scene{
		"queues":       {all, queuesOnRedis()},
		"queues-span":  {all, queuesInSpan()},
		"queues-all":   {all, templates.Queues{Queues: someQueues()[:1], All: true, Sorts: queueSorts(), Others: "/ops/queues", Poll: queues.Snapshot{At: at(0), Source: "passive declare", Broker: broker.Info{Kind: "RabbitMQ"}}}},
		"queues-none":  {all, templates.Queues{Sorts: queueSorts()}},
		"queues-empty": {all, templates.Queues{Sorts: queueSorts(), Poll: queues.Snapshot{At: at(0)}}},
		"queues-away":  {down(all), templates.Queues{Sorts: queueSorts(), Poll: queues.Snapshot{Error: "broker not connected"}}},
		"queue": {one, templates.QueuePage{
			Queue: someQueues()[0], Poll: queuesOnRedis().Poll, Tasks: []state.Task{retried()}, Waiting: command.WaitingMessages{List: messages()},
			Chart: chart(),
		}},
		"queue-missing": {one, templates.QueuePage{
			Chart: chartOff(),
			Queue: someQueues()[2], Waiting: command.WaitingMessages{Error: "Looking into a queue of RabbitMQ would change it."},
		}},
		"queue-unknown":    {one, templates.QueuePage{Chart: chartOff(), Queue: someQueues()[1]}},
		"queue-hostile":    {one, templates.QueuePage{Chart: chartOff(), Queue: someQueues()[3]}},
		"queues-then":      {past(all), templates.Queues{Sorts: queueSorts(), Then: true, Queues: queuesThen(), Sent: map[string]int{"mail": 3}, Poll: queues.Snapshot{At: at(0)}}},
		"queues-then-none": {past(all), templates.Queues{Sorts: queueSorts(), Then: true}},
		"queue-then": {past(one), templates.QueuePage{
			Chart: chartOff(), Queue: queuesThen()[0], Poll: queues.Snapshot{At: at(0), Source: "one record a minute"}, End: at(20 * second), Sent: 3, NotReceived: []state.Task{retried()},
		}},
		"queue-then-unknown": {past(one), templates.QueuePage{Chart: chartOff(), Queue: queuesThen()[1], End: at(0)}},
		"purge": {layout(templates.SectionQueues, ""), templates.Form{
			Title: "Purge queue mail", Path: "/act/purge", Danger: true, Hidden: []templates.Param{{Name: "queue", Value: "mail"}},
			Preview: &templates.Preview{
				Preview: command.Preview{
					Summary: "Remove the 3 messages that wait in queue mail.", Targets: []string{"queue mail"}, Confirm: "mail",
				},
				Lost: &command.WaitingMessages{List: messages()},
			},
		}},
	}
}

func messages() []command.WaitingMessage {
	return []command.WaitingMessage{
		{ID: retried().ID, Name: "billing.tasks.charge", Args: "(42,)", Kwargs: "{'user': 7}", Priority: 3},
		{ID: "x", Name: "mail.send", ETA: at(60 * second)},
		{Error: "its content is a pickle"},
		{ID: evil, Name: evil, Args: evil, Kwargs: evil, Error: evil},
	}
}

// queuesThen are queues of an instant: one of a record, and one that only tasks name.
func queuesThen() []templates.Queue {
	return []templates.Queue{
		{
			Then: true, Depths: []templates.Depth{{Second: 3460, Ready: 40}, {Second: 3520, Ready: 10}},
			Queue: queues.Queue{
				Queue: broker.Queue{Name: "mail", Ready: new(int64(10))}, Workers: []string{"celery@a"}, WorkersKnown: true,
				InRate: new(1.0), OutRate: new(1.5), RatesFrom: "events",
			},
		},
		{Then: true, Queue: queues.Queue{Queue: broker.Queue{Name: "media"}}},
	}
}

func someQueues() []templates.Queue {
	seconds := func(n float64) *time.Duration { return new(time.Duration(n * float64(time.Second))) }
	return []templates.Queue{
		{
			Queue: queues.Queue{
				Queue: broker.Queue{
					Name: "mail", Ready: new(int64(12_345)), Unacked: new(int64(8)), Consumers: new(int64(2)), Type: "list", State: "running",
					OldestUnacked: new(at(-3000 * second)), MaxPriority: new(int64(9)), Durable: new(false),
					Steps: []broker.Step{{Priority: 0, Ready: 12_000}, {Priority: 3, Ready: 345}},
				},
				Workers: []string{"celery@a", "celery@b"}, WorkersKnown: true, InRate: new(120.4), OutRate: new(200.0), RatesFrom: "broker",
				Age: seconds(90), AgeAtLeast: seconds(80), AgeAtMost: seconds(101.5), DrainTime: seconds(154), RedeliveredAt: new(at(600 * second)),
				Warnings: []string{"The delivery that is held longest is given to another worker in 10 min: the visibility timeout is 1 h."},
			},
			Depths: []templates.Depth{{Second: 0, Ready: 10}, {Second: 5, Ready: 20}, {Second: 400, Ready: 0}, {Second: 3600, Ready: 12_345}},
		},
		{Queue: queues.Queue{Queue: broker.Queue{Name: "unknown"}}},
		{Queue: queues.Queue{
			Queue:        broker.Queue{Name: "gone", Missing: true, Durable: new(true), Ready: new(int64(0))},
			WorkersKnown: true, Warnings: []string{"No worker consumes from it."},
		}},
		{Queue: queues.Queue{
			Queue:   broker.Queue{Name: evil, Error: evil, Type: evil, State: evil},
			Workers: []string{evil}, WorkersKnown: true, RatesFrom: evil, Warnings: []string{evil},
		}},
		{Queue: queues.Queue{
			Queue:      broker.Queue{Name: "older than the first look", Ready: new(int64(3))},
			AgeAtLeast: seconds(15), AgeAtMost: seconds(30),
		}},
		{Queue: queues.Queue{Queue: broker.Queue{Name: "with priorities", Ready: new(int64(3))}, AgeAtMost: seconds(30)}},
	}
}

// queueSorts are orders of a list of queues.
func queueSorts() map[string]templates.Sort {
	sorts := map[string]templates.Sort{}
	for _, key := range append(queues.SortKeys(), "failed") {
		sorts[key] = templates.Sort{Href: "/ops/queues?sort=-" + key}
	}
	sorts["ready"] = templates.Sort{Href: "/ops/queues?sort=ready", Order: "descending"}
	return sorts
}

// queuesInSpan says what ended in a span that was chosen.
func queuesInSpan() templates.Queues {
	v, span := queuesOnRedis(), someTime()
	v.Counted, v.Observed, v.Step, v.Span, v.Carry = true, true, 20*time.Minute, span.Chosen, span.Carry
	v.Queues = v.Queues[:2]
	v.Queues[0].Ended = []tasktype.Step{{}, {Observed: true, Succeeded: 8, Failed: 1}, {Observed: true, Succeeded: 3}}
	return v
}

func queuesOnRedis() templates.Queues {
	return templates.Queues{Queues: someQueues(), Hidden: 3, Sorts: queueSorts(), Others: "/ops/queues?hidden=true", Poll: queues.Snapshot{At: at(0), Source: "LLEN", Broker: broker.Info{
		Kind: "Redis", Version: "7.2.4", Memory: new(int64(512 << 20)), MemoryLimit: new(int64(1 << 30)), Clients: new(int64(41)),
		VisibilityTimeout: new(time.Hour), Warnings: []string{"maxmemory-policy is allkeys-lru: queues may be evicted."},
	}}}
}
