package remote

import (
	"fmt"
	"slices"

	"github.com/umbelhq/umbel/state/query"
)

// Method is a remote control command that Umbel offers. Commands that harm workers, or that only workers may use,
// are not offered: election, hello, objgraph, memdump.
type Method struct {
	Name      string
	Title     string // imperative, for buttons: Grow pool
	Doc       string // one sentence
	Inspect   bool   // only reads
	NoReply   bool   // workers do not reply it (shutdown)
	Dangerous bool   // needs confirmation
	Params    []Param
}

// Param is an argument of a Method.
type Param struct {
	Name     string
	Type     ParamType
	Required bool
	Min      int64 // of Integer
	Doc      string
	Choices  []string // the only values of a Text or Signal, nil if there are others
}

// ParamType is the type of an argument.
type ParamType uint8

// Types of arguments.
const (
	Text     ParamType = iota // string, not empty
	TextList                  // array of strings, not empty
	Integer                   // integer from Min
	Seconds                   // number > 0, or null for none
	Rate                      // "10/m", "5/s", "2/h", a number, or 0 for no limit
	Signal                    // SIGTERM, SIGKILL, …
	Flag                      // boolean
	AnyJSON                   // any JSON
)

// Methods returns all methods, inspecting ones first.
func Methods() []Method {
	all := inspecting()
	for i := range all {
		all[i].Inspect = true
	}
	return append(all, acting()...)
}

// Lookup finds a method by name. Celery's older names of inspecting methods, such as dump_active, are known too.
func Lookup(name string) (Method, bool) {
	name = canonical(name)
	for _, m := range Methods() {
		if m.Name == name {
			return m, true
		}
	}
	return Method{}, false
}

// Nearest returns the name of the method that was probably meant, empty if none is near.
func Nearest(name string) string {
	var names []string
	for _, m := range Methods() {
		names = append(names, m.Name)
	}
	return query.Nearest(name, names)
}

// Refused says why Umbel does not offer a command that workers have, empty if it does or if there is no such
// command.
func Refused(name string) string {
	switch name {
	case "election":
		return "it is for workers among each other, and crashes one that is alone"
	case "hello":
		return "it is for workers among each other, and changes what they have revoked"
	case "objgraph":
		return "it writes a file on the worker and may stop it for a minute"
	case "memdump":
		return "it reads what other commands have collected, and holds the worker up"
	}
	return ""
}

// canonical returns the newer name of a method.
func canonical(name string) string {
	switch name {
	case "dump_active":
		return "active"
	case "dump_reserved":
		return "reserved"
	case "dump_schedule":
		return "scheduled"
	case "dump_revoked":
		return "revoked"
	case "dump_tasks":
		return "registered"
	case "dump_conf":
		return "conf"
	}
	return name
}

// inspecting returns the methods that only read.
func inspecting() []Method {
	return []Method{
		{Name: "ping", Title: "Ping", Doc: "Asks whether the worker answers."},
		{Name: "stats", Title: "Show statistics", Doc: "Pool, counts of tasks, broker and resources."},
		{Name: "active", Title: "Show active tasks", Doc: "Tasks that run now.", Params: []Param{
			{Name: "safe", Type: Flag, Doc: "Arguments as text rather than as values; since Celery 5.2."},
		}},
		{Name: "reserved", Title: "Show reserved tasks", Doc: "Tasks that are fetched and wait to run."},
		{Name: "scheduled", Title: "Show scheduled tasks", Doc: "Tasks that wait in the worker for their time."},
		{Name: "revoked", Title: "Show revoked tasks", Doc: "Ids of tasks that the worker will not run."},
		{Name: "registered", Title: "Show registered tasks", Doc: "Tasks that the worker can run.", Params: []Param{
			{Name: "taskinfoitems", Type: TextList, Doc: "Attributes to show; exchange, routing_key and rate_limit if left out."},
			{Name: "builtins", Type: Flag, Doc: "With Celery's own tasks."},
		}},
		{Name: "active_queues", Title: "Show queues", Doc: "Queues that the worker consumes from."},
		{Name: "conf", Title: "Show configuration", Doc: "Settings, secrets masked.", Params: []Param{
			{Name: "with_defaults", Type: Flag, Doc: "With those that are at their defaults."},
		}},
		{Name: "report", Title: "Show report", Doc: "The text of celery report."},
		{Name: "query_task", Title: "Find tasks", Doc: "Where tasks are in the worker; it does not see those that wait for their time.", Params: []Param{
			{Name: "ids", Type: TextList, Required: true, Doc: "Task ids."},
		}},
		{Name: "clock", Title: "Show clock", Doc: "The worker's logical clock."},
		{Name: "memsample", Title: "Show memory", Doc: "Memory of the main process; needs psutil there."},
	}
}

func acting() []Method { return append(aboutTasks(), aboutWorkers()...) }

// signals that workers may be told to end a process with.
func signals() []string {
	return []string{"SIGTERM", "SIGKILL", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"}
}

func signalParam() Param {
	return Param{Name: "signal", Type: Signal, Choices: signals(), Doc: "What ends the process; SIGTERM if left out."}
}

func aboutTasks() []Method {
	ids := Param{Name: "task_id", Type: TextList, Required: true, Doc: "Task ids."}
	task := Param{Name: "task_name", Type: Text, Required: true, Doc: "Name of a registered task."}
	end := Param{Name: "terminate", Type: Flag, Doc: "Also end the process of a task that runs."}
	return []Method{
		{
			Name: "revoke", Title: "Revoke tasks", Dangerous: true,
			Doc:    "Keeps tasks from starting. Workers forget it when they restart, unless they have --statedb.",
			Params: []Param{ids, end, signalParam()},
		},
		{
			Name: "terminate", Title: "Terminate tasks", Dangerous: true,
			Doc:    "Revokes tasks and ends the pool process of those that run, whatever it runs by then.",
			Params: []Param{ids, signalParam()},
		},
		{
			Name: "revoke_by_stamped_headers", Title: "Revoke by stamps", Dangerous: true,
			Doc: "Revokes tasks by the headers that they are stamped with; since Celery 5.3.",
			Params: []Param{
				{Name: "headers", Type: AnyJSON, Required: true, Doc: "Object of a value, or a list of values, by header."},
				end, signalParam(),
			},
		},
		{
			Name: "rate_limit", Title: "Set rate limit", Doc: "Limits how often a worker starts a task, until it restarts.",
			Params: []Param{task, {Name: "rate_limit", Type: Rate, Required: true, Doc: "Such as 10/m, 5/s or 2/h; 0 is no limit."}},
		},
		{
			Name: "time_limit", Title: "Set time limits", Doc: "Limits how long a task may run, until the worker restarts. A limit that is left out is removed.",
			Params: []Param{
				task,
				{Name: "soft", Type: Seconds, Doc: "Raises SoftTimeLimitExceeded in the task after so many seconds."},
				{Name: "hard", Type: Seconds, Doc: "Kills the task's process after so many seconds."},
			},
		},
	}
}

func aboutWorkers() []Method {
	queue := Param{Name: "queue", Type: Text, Required: true, Doc: "Name of the queue."}
	processes := Param{Name: "n", Type: Integer, Min: 1, Doc: "How many processes; 1 if left out."}
	return []Method{
		{Name: "enable_events", Title: "Enable task events", Doc: "Has the worker send events of tasks."},
		{
			Name: "disable_events", Title: "Disable task events",
			Doc: "Has the worker send no events of tasks. It does nothing to one that was started with -E.",
		},
		{Name: "heartbeat", Title: "Send heartbeat", Doc: "Has the worker send a heartbeat now."},
		{Name: "pool_grow", Title: "Grow pool", Doc: "Adds processes to a prefork pool without autoscaling.", Params: []Param{processes}},
		{Name: "pool_shrink", Title: "Shrink pool", Doc: "Takes idle processes from a prefork pool without autoscaling.", Params: []Param{processes}},
		{
			Name: "pool_restart", Title: "Restart pool", Dangerous: true,
			Doc:    "Replaces the pool's processes; only where worker_pool_restarts is on.",
			Params: []Param{{Name: "modules", Type: TextList, Doc: "Modules to import anew."}},
		},
		{
			Name: "autoscale", Title: "Set autoscaling", Doc: "Changes the bounds of a pool that was started with --autoscale.",
			Params: []Param{
				{Name: "max", Type: Integer, Required: true, Min: 1, Doc: "Most processes."},
				{Name: "min", Type: Integer, Required: true, Doc: "Fewest processes."},
			},
		},
		{Name: "add_consumer", Title: "Add consumer", Doc: "Has the worker consume from a queue too.", Params: []Param{
			queue,
			{Name: "exchange", Type: Text, Doc: "Exchange that the queue is bound to; of the queue's name if left out."},
			{Name: "exchange_type", Type: Text, Choices: []string{"direct", "topic", "fanout", "headers"}, Doc: "direct if left out."},
			{Name: "routing_key", Type: Text, Doc: "Key that the queue is bound with; the queue's name if left out."},
		}},
		{Name: "cancel_consumer", Title: "Cancel consumer", Dangerous: true, Doc: "Has the worker consume from a queue no longer.", Params: []Param{queue}},
		{
			Name: "shutdown", Title: "Shut down", Dangerous: true, NoReply: true,
			Doc: "Ends the worker once its running tasks have ended. It does not answer.",
		},
	}
}

// ArgumentError says which argument is wrong, and how.
type ArgumentError struct {
	Method   string
	Argument string // its name
	Message  string // what it must be
	Nearest  string // what was probably meant, empty if nothing is near
}

// Error returns one sentence.
func (e *ArgumentError) Error() string {
	s := fmt.Sprintf("argument %s of %s %s", e.Argument, e.Method, e.Message)
	if e.Nearest != "" {
		s += fmt.Sprintf(": did you mean %s?", e.Nearest)
	}
	return s
}

// param finds a parameter.
func (m Method) param(name string) (Param, bool) {
	i := slices.IndexFunc(m.Params, func(p Param) bool { return p.Name == name })
	if i < 0 {
		return Param{}, false
	}
	return m.Params[i], true
}
