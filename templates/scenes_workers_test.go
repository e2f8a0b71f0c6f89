package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/monitor/workers"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/gossip"
	"github.com/umbelhq/umbel/templates"
)

func workerScenes() map[string]scene {
	at := layout(templates.SectionWorkers, "/workers/celery@a")
	tab := func(v templates.Worker) scene { return scene{at, v} }
	list := map[string]scene{
		"workers":         {layout(templates.SectionWorkers, "/workers"), templates.Workers{Workers: workerRows(), All: knownWorkers(), Actions: methods(), Sorts: workerSorts("name")}},
		"workers-by-host": {layout(templates.SectionWorkers, "/workers"), workersByHost()},
		"workers-sorted": {layout(templates.SectionWorkers, "/workers?sort=-failed"), templates.Workers{
			Workers: workerRows()[1:2], All: knownWorkers(), Sort: "-failed", ByHost: "/ops/workers",
			Sorts: workerSorts("failed"),
		}},
		"workers-unlike": {layout(templates.SectionWorkers, "/workers?find=x"), templates.Workers{All: knownWorkers(), Find: "x", Actions: methods(), Sorts: workerSorts("name"), Duplicates: []string{"celery@a", "<b>"}}},
		"workers-gossip": {layout(templates.SectionWorkers, "/workers"), templates.Workers{
			Workers: workerRows()[:1], All: knownWorkers(), Sorts: workerSorts("name"), Gossip: &gossip.Report{
				Compared: 6, Islands: [][]string{{"celery@a", "celery@b"}}, Deaf: []gossip.Deaf{
					{Worker: "celery@c", Speaker: "celery@a", Since: noon - 60*second, Longer: true},
					{Worker: "celery@c", Speaker: "celery@b", Since: noon - 30*second},
					{Worker: evil, Speaker: "celery@a", Since: noon - 10*second},
				},
			},
		}},
		"workers-gossip-unknown": {dark(layout(templates.SectionWorkers, "/workers")), templates.Workers{
			Workers: workerRows()[:1], All: knownWorkers(), Sorts: workerSorts("name"), Gossip: &gossip.Report{Compared: 2},
		}},
		"workers-none":     {down(layout(templates.SectionWorkers, "/workers")), templates.Workers{Actions: methods(), Sorts: workerSorts("name")}},
		"workers-watching": {layout(templates.SectionWorkers, "/workers"), templates.Workers{Workers: workerRows()[:1], All: knownWorkers(), Find: "mail " + evil, Sorts: workerSorts("name")}},

		"worker-late":     tab(workerAt(1, templates.TabNow)),
		"worker-missing":  tab(workerMissing()),
		"worker-draining": tab(workerDraining()),
		"worker-offline":  tab(workerOffline()),
		"worker-stopping": tab(workerAt(3, templates.TabHistory)),
		"worker-no-reply": tab(workerNoReply()),
		"worker-stuck":    tab(workerStuck()),
		"worker-offset":   tab(workerOffset()),
	}
	for t, v := range workerTabs() {
		list["worker-"+string(t)] = tab(v)
	}
	for name, v := range acts() {
		list["act-"+name] = scene{layout(templates.SectionWorkers, ""), v}
	}
	return list
}

func workerRows() []workers.Row {
	w := knownWorkers()
	export := workers.Run{ID: retried().ID, Name: "orders.export", StartedAt: noon - 720*second, Elapsed: 12 * time.Minute, Usual: 3 * time.Second}
	return []workers.Row{
		{
			Worker: w[0], Pool: "prefork", Slots: new(int64(4)), Queues: []string{"celery", "mail"}, QueuesKnown: true,
			Memory: new(int64(61_440_000)), Ends: workers.Ends{Succeeded: 97, Failed: 3}, Longest: &export,
		},
		{Worker: w[1], Pool: "threads", QueuesKnown: true, Ends: workers.Ends{Succeeded: 1}, Longest: &workers.Run{ID: evil, StartedAt: noon}},
		{Worker: w[2], QueuesKnown: true, Queues: []string{"celery"}, Pool: "prefork", ReportedAt: noon - 3600*second},
		{Worker: w[3], Pool: evil, Slots: new(int64(0)), Queues: []string{evil}, QueuesKnown: true},
	}
}

// workerSorts are the heads of a list that is sorted by a key.
func workerSorts(by string) map[string]templates.Sort {
	sorts := map[string]templates.Sort{}
	for _, key := range workers.SortKeys() {
		sorts[key] = templates.Sort{Href: "/ops/workers?sort=" + key}
	}
	if by != "" {
		sorts[by] = templates.Sort{Href: "/ops/workers?sort=-" + by, Order: "ascending"}
	}
	return sorts
}

// workersByHost have two hosts.
func workersByHost() templates.Workers {
	v := templates.Workers{Workers: workerRows(), All: knownWorkers(), Actions: methods(), Sorts: workerSorts("")}
	for i, name := range []string{"celery@web-1", "mail@web-1", "celery@web-2", evil} {
		v.Workers[i].Name = name
	}
	v.Groups = workers.ByHost(v.Workers)
	return v
}

func methods() []templates.Option {
	return []templates.Option{{Value: "pool_grow", Label: "Grow pool"}, {Value: "shutdown", Label: "Shut down"}}
}

// workerAt is the page of one of the workers, with nothing asked.
func workerAt(i int, t templates.WorkerTab) templates.Worker {
	return templates.Worker{
		Worker: knownWorkers()[i], Tab: t, Actions: methods(),
		Tabs: []templates.WorkerTab{
			templates.TabNow, templates.TabHistory, templates.TabQueues, templates.TabTasks, templates.TabConfig,
			templates.TabSystem, templates.TabClock, templates.TabCommands,
		},
	}
}

// workerOffset has a clock that is behind, by bounds that have begun anew once.
func workerOffset() templates.Worker {
	v := workerAt(0, templates.TabClock)
	off := state.ClockOffset{Low: -3_602_500_000, High: -3_599_400_000}
	v.Worker.ClockOffset, v.Worker.ClockOffsetMicros = &off, new(int64(-3_600_950_000))
	v.Clock.History = []state.OffsetPoint{
		{At: noon - 600*second, Offset: state.ClockOffset{Low: -5_000, High: state.OpenHigh}}, {At: noon - 300*second, Offset: off}, {At: noon, Offset: off},
	}
	return v
}

func workerMissing() templates.Worker {
	v := workerAt(0, templates.TabHistory)
	v.Gaps = []view.Gap{
		{Worker: v.Worker.Name, PID: 7, Missing: 3, After: 880, Before: 905, AfterMicros: noon - 10*second, BeforeMicros: noon},
		{Worker: v.Worker.Name, PID: 7, Missing: 1, After: 1200, Before: 1202, AfterMicros: noon + 60*second, BeforeMicros: noon + 62*second},
		{Worker: v.Worker.Name, PID: 7, Missing: 1, After: 1210, Before: 1214, AfterMicros: noon + 70*second, BeforeMicros: noon + 71*second, Task: "6f61c0de-0000-4000-a000-000000000001"},
	}
	return v
}

// workerDraining still runs a task.
func workerDraining() templates.Worker {
	v := workerAt(0, templates.TabHistory)
	v.Drain = &command.Drain{
		Command: history.Command{
			ID: 9, RequestID: 9, State: history.CommandPending, Actor: "ann", CreatedAt: time.UnixMicro(noon - 60*second),
			LastError: "It consumes from no queue. 1 task runs.",
		},
		Queues: []string{"celery"}, Shutdown: true,
	}
	return v
}

func workerOffline() templates.Worker {
	v := workerAt(2, templates.TabQueues)
	v.LastReport = workers.Row{
		Worker: v.Worker, Pool: "prefork", Slots: new(int64(4)), Queues: []string{"celery", evil}, QueuesKnown: true, ReportedAt: noon - 3*3600*second,
	}
	v.Actions, v.Forget, v.Inspection = nil, true, templates.Inspection{Why: "It is not online, so it is not asked."}
	return v
}

// workerNoReply has answered some questions and not others.
func workerNoReply() templates.Worker {
	v := workerAt(0, templates.TabNow)
	v.Inspection = told()
	v.Inspection.InProgress = true
	delete(v.Inspection.Times, "scheduled")
	v.Inspection.Errors = map[string]string{"active": "no reply from celery@a in 2 s", "scheduled": "cannot decode the reply: " + evil}
	return v
}

// workerStuck has answered all questions, and then none.
func workerStuck() templates.Worker {
	v := workerAt(0, templates.TabNow)
	v.Inspection, v.Now = told(), holding()
	v.Inspection.Errors = map[string]string{}
	for method := range v.Inspection.Times {
		v.Inspection.Errors[method] = "no reply from celery@a in 2 s"
	}
	return v
}

func told() templates.Inspection {
	times := map[string]int64{}
	for _, m := range []string{"stats", "active", "reserved", "scheduled", "revoked", "registered", "active_queues", "conf"} {
		times[m] = noon - 3*second
	}
	return templates.Inspection{
		At: noon - 3*second, Times: times, Truncated: map[string]int{"revoked": 4000}, Refresh: "/ops/workers/celery@a?refresh=1&tab=now",
	}
}

// workerTabs are the tabs of a worker that has replied to everything.
func workerTabs() map[templates.WorkerTab]templates.Worker {
	list := map[templates.WorkerTab]templates.Worker{}
	for _, t := range workerAt(0, "").Tabs {
		v := workerAt(0, t)
		v.Inspection = told()
		switch t {
		case templates.TabNow:
			v.Now = holding()
		case templates.TabHistory:
			v.Tasks = []state.Task{succeeded()}
			v.Runs = []templates.RunTimes{
				{Name: "billing.charge", N: 120, Failed: 3, Median: new(0.2), Worst: new(12.5)}, {Name: evil, N: 1},
			}
		case templates.TabQueues:
			v.Queues = []templates.ConsumedQueue{
				{ConsumedQueue: remote.ConsumedQueue{
					Name: "mail/out", Exchange: "mail", ExchangeType: "direct", RoutingKey: "mail.#", Durable: new(true), MaxPriority: new(int64(10)),
				}, Others: 2},
				{ConsumedQueue: remote.ConsumedQueue{Name: evil, RoutingKey: evil}},
			}
		case templates.TabTasks:
			v.Registered = []templates.RegisteredTask{
				{Name: "billing.charge", Limit: "10/m", Info: "serializer=json max_retries=3", Total: new(int64(12))}, {Name: evil, Info: evil},
			}
		case templates.TabConfig:
			v.Config = templates.WorkerConfig{
				Settings: []templates.Setting{
					{Name: "broker_url", Value: "amqp://guest:********@rabbit:5672//"},
					{Name: "task_acks_late", Value: "true", Differs: []templates.Differing{
						{Value: "false", Workers: []string{"celery@b", "celery@d"}}, {Workers: []string{evil}},
					}},
					{Name: evil, Differs: []templates.Differing{{Value: evil, Workers: []string{"celery@b"}}}},
				},
				All: 12, Find: evil, Differ: true, Compared: 3, Waiting: 1,
			}
		case templates.TabSystem:
			v.System = workerSystem()
		case templates.TabClock:
			v.Clock.Reported = new(int64(2048))
		case templates.TabCommands:
			reply := func(text string, ok bool) []history.Reply {
				return []history.Reply{{Node: "celery@other", Text: "no"}, {Node: v.Worker.Name, Text: text, OK: ok}}
			}
			v.Commands = []history.Command{
				{RequestID: 7, Summary: "Grow pool by 2", State: "done", Actor: "ada", CreatedAt: at(0), Replies: reply("pool will grow", true)[1:]},
				{RequestID: 6, Summary: evil, State: "done", CreatedAt: at(0), Replies: reply(evil, false)},
				{RequestID: 5, Summary: "Ping", State: "no_reply", CreatedAt: at(0), LastError: "no reply from celery@a in 2 s"},
				{RequestID: 4, Summary: "Shut down", State: "pending", CreatedAt: at(0)},
			}
		}
		list[t] = v
	}
	return list
}

func holding() templates.WorkerNow {
	return templates.WorkerNow{
		Active: []templates.WorkerTask{
			{
				ByWorker: true, ByEvents: true, WorkerAt: noon - 3*second, EventsAt: noon - 55*second, Usual: 3 * time.Second, ID: retried().ID, Name: "billing.charge", Args: "(42,)", Kwargs: "{'retry': True}", StartedAt: noon - 55*second, Elapsed: 52,
				PID: new(int64(4242)), Queue: "celery", Soft: new(60.0), Hard: new(90.0), Terminate: true,
			},
			{ByEvents: true, ID: evil, Name: evil, Args: evil, Queue: evil, StartedAt: noon, Elapsed: 1, Hard: new(3600.0)},
		},
		Reserved:  []templates.WorkerTask{{ByWorker: true, ID: "r/1", Name: "mail.send", Args: "()", Kwargs: "{}", Queue: "mail", Priority: new(int64(3)), Redelivered: true, Revoke: true}},
		Scheduled: []templates.WorkerTask{{ByWorker: true, ID: "s-1", Name: "report.daily", ETA: noon + 3600*second, Queue: "celery", Revoke: true}, {ByWorker: true, ID: "s-2", Revoke: true}},
		Revoked:   []string{retried().ID, evil},
		Lost:      []templates.WorkerTask{{ByEvents: true, EventsAt: noon - 3600*second, ID: "l-1", Name: "billing.charge", StartedAt: noon - 3600*second}},
		LostInAll: 12,
	}
}

func workerSystem() templates.WorkerSystem {
	task := holding().Active[0]
	return templates.WorkerSystem{
		Known: true, PID: 41, StartedAt: noon - 7200*second, Implementation: "celery.concurrency.prefork:TaskPool", Kind: "prefork",
		MaxConcurrency: new(int64(2)), Slots: new(int64(3)), MaxTasks: "100", Soft: new(60.0), Prefetch: new(int64(8)),
		Processes:  []templates.PoolProcess{{PID: 4242, Task: &task}, {PID: 4243}},
		Autoscaler: "2 to 6 processes, 3 now",
		Writes:     []templates.Param{{Name: "strategy", Value: "fair"}},
		Broker:     []templates.Param{{Name: "hostname", Value: evil}},
		Usage:      []templates.Param{{Name: "CPU, user", Value: "0.7 s"}},
		Totals:     []templates.TaskTotal{{Name: "billing.charge", N: 12_345}},
		Report:     "software -> celery:5.6.3\n" + evil,
	}
}

// acts are forms on their way to a request.
func acts() map[string]templates.Form {
	grow := templates.Form{
		Section: templates.SectionWorkers, Title: "Grow pool", Description: "Adds processes to the pool.", Path: "/act/worker",
		Crumbs: []templates.Link{{Text: "Workers", Href: "/ops/workers"}, {Text: "celery@a", Href: "/ops/workers/celery@a"}},
		Hidden: []templates.Param{{Name: "method", Value: "pool_grow"}, {Name: "worker", Value: "celery@a"}, {Name: "worker", Value: evil}},
		Fields: []templates.Input{
			{Name: "arg.n", Field: "arguments.n", Label: "N", Hint: "How many.", Kind: templates.InputNumber, Value: "2", Required: true},
			{Name: "arg.queue", Field: "arguments.queue", Label: "Queue", Value: evil, Options: []string{"celery", evil}},
			{Name: "arg.note", Field: "arguments.note", Label: "Note", Kind: templates.InputArea, Value: "a\nb\n" + evil},
			{Name: "arg.reload", Field: "arguments.reload", Label: "Reload", Kind: templates.InputCheck, Value: "true", Hint: "Or not."},
			{Name: "arg.kind", Field: "arguments.kind", Label: "Kind", Kind: templates.InputChoice, Options: []string{"direct", "topic"}, Value: "topic"},
		},
		Targets: []string{"celery@a", evil}, Change: "/ops/act/worker?method=pool_grow", Token: "token",
	}
	sure := grow
	sure.Danger, sure.Button = true, "Shut them down"
	sure.Preview = &templates.Preview{Preview: command.Preview{
		Summary: "Shut down 2 workers.", Targets: []string{"celery@a", evil}, Confirm: "celery@a",
		Held: &command.Held{
			Running: []command.HeldTask{{ID: retried().ID, Name: "orders.export", Worker: "celery@a", Queue: "celery", StartedAt: time.UnixMicro(noon)}},
			Waiting: []command.HeldTask{{ID: evil, Worker: evil, ByEvents: true}},
		},
		Warnings: []command.Warning{{Message: "This leaves queue mail with no consumer.", Severe: true}, {Message: evil}},
	}}
	long := sure.Refuse("elsewhere", "The broker is away.")
	long.Long, long.Preview = true, nil
	return map[string]templates.Form{
		"fields": grow, "preview": sure, "refused": long, "wrong-field": sure.Refuse("arguments.n[0]", "It must be a whole number."),
	}
}
