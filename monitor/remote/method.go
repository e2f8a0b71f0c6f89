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
	NoReply   bool   // workers do not reply to it (shutdown)
	Dangerous bool   // needs confirmation
	Steps     bool   // no command of Celery's: Umbel does it by several
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

// Refused says why Umbel does not offer a command that workers have. It is empty for all others.
func Refused(name string) string {
	switch name {
	case "election":
		return "workers use it among themselves, and it crashes a worker that is alone"
	case "hello":
		return "workers use it among themselves, and it changes what they have revoked"
	case "objgraph":
		return "it writes a file on the worker and may stop it for a minute"
	case "memdump":
		return "it reports what other commands have collected, and blocks the worker"
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
		{Name: "ping", Title: "Ping", Doc: "Checks whether the worker replies."},
		{Name: "stats", Title: "Show statistics", Doc: "Pool, task counts, broker and resources."},
		{Name: "active", Title: "Show active tasks", Doc: "Tasks running now.", Params: []Param{
			{Name: "safe", Type: Flag, Doc: "Arguments as text rather than as values; since Celery 5.2."},
		}},
		{Name: "reserved", Title: "Show reserved tasks", Doc: "Tasks prefetched and waiting to run."},
		{Name: "scheduled", Title: "Show scheduled tasks", Doc: "Tasks waiting in the worker for their ETA."},
		{Name: "revoked", Title: "Show revoked tasks", Doc: "Ids of tasks that the worker will not run."},
		{Name: "registered", Title: "Show registered tasks", Doc: "Tasks the worker can run.", Params: []Param{
			{Name: "taskinfoitems", Type: TextList, Doc: "Attributes to show; exchange, routing_key and rate_limit if omitted."},
			{Name: "builtins", Type: Flag, Doc: "Include Celery's own tasks."},
		}},
		{Name: "active_queues", Title: "Show queues", Doc: "Queues the worker consumes from."},
		{Name: "conf", Title: "Show configuration", Doc: "Settings, secrets masked.", Params: []Param{
			{Name: "with_defaults", Type: Flag, Doc: "Include settings at their defaults."},
		}},
		{Name: "report", Title: "Show report", Doc: "The text of celery report."},
		{Name: "query_task", Title: "Find tasks", Doc: "Where tasks are in the worker; those waiting for their ETA are not found.", Params: []Param{
			{Name: "ids", Type: TextList, Required: true, Doc: "Task ids."},
		}},
		{Name: "clock", Title: "Show clock", Doc: "The worker's logical clock."},
		{Name: "memsample", Title: "Show memory", Doc: "Memory of the main process; needs psutil there."},
	}
}

func acting() []Method { return append(aboutTasks(), aboutWorkers()...) }

// signals with which workers may terminate a process.
func signals() []string {
	return []string{"SIGTERM", "SIGKILL", "SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2"}
}

func signalParam() Param {
	return Param{Name: "signal", Type: Signal, Choices: signals(), Doc: "Signal sent to the process; SIGTERM if omitted."}
}

func aboutTasks() []Method {
	ids := Param{Name: "task_id", Type: TextList, Required: true, Doc: "Task ids."}
	task := Param{Name: "task_name", Type: Text, Required: true, Doc: "Name of a registered task."}
	end := Param{Name: "terminate", Type: Flag, Doc: "Also terminate the process of a running task."}
	return []Method{
		{
			Name: "revoke", Title: "Revoke tasks", Dangerous: true,
			Doc:    "Keeps tasks from starting. Workers forget it when they restart, unless started with --statedb.",
			Params: []Param{ids, end, signalParam()},
		},
		{
			Name: "terminate", Title: "Terminate tasks", Dangerous: true,
			Doc:    "Revokes tasks and terminates the pool process of those running, whatever it runs by then.",
			Params: []Param{ids, signalParam()},
		},
		{
			Name: "revoke_by_stamped_headers", Title: "Revoke by stamps", Dangerous: true,
			Doc: "Revokes tasks by the headers they are stamped with; since Celery 5.3.",
			Params: []Param{
				{Name: "headers", Type: AnyJSON, Required: true, Doc: "Object of a value, or a list of values, by header."},
				end, signalParam(),
			},
		},
		{
			Name: "rate_limit", Title: "Set rate limit", Doc: "Limits how often a worker starts a task, until it restarts.",
			Params: []Param{task, {Name: "rate_limit", Type: Rate, Required: true, Doc: "Such as 10/m, 5/s or 2/h; 0 for no limit."}},
		},
		{
			Name: "time_limit", Title: "Set time limits", Doc: "Limits how long a task may run, until the worker restarts. An omitted limit is removed.",
			Params: []Param{
				task,
				{Name: "soft", Type: Seconds, Doc: "Seconds until SoftTimeLimitExceeded is raised in the task."},
				{Name: "hard", Type: Seconds, Doc: "Seconds until the task's process is killed."},
			},
		},
	}
}

func aboutWorkers() []Method {
	queue := Param{Name: "queue", Type: Text, Required: true, Doc: "Name of the queue."}
	processes := Param{Name: "n", Type: Integer, Min: 1, Doc: "Number of processes; 1 if omitted."}
	return []Method{
		{Name: "enable_events", Title: "Enable task events", Doc: "Makes the worker send task events."},
		{
			Name: "disable_events", Title: "Disable task events",
			Doc: "Stops the worker from sending task events, unless it was started with -E.",
		},
		{Name: "heartbeat", Title: "Send heartbeat", Doc: "Makes the worker send a heartbeat now."},
		{Name: "pool_grow", Title: "Grow pool", Doc: "Adds processes to a prefork pool without autoscaling.", Params: []Param{processes}},
		{Name: "pool_shrink", Title: "Shrink pool", Doc: "Removes idle processes from a prefork pool without autoscaling.", Params: []Param{processes}},
		{
			Name: "pool_restart", Title: "Restart pool", Dangerous: true,
			Doc:    "Replaces the pool's processes; only where worker_pool_restarts is on.",
			Params: []Param{{Name: "modules", Type: TextList, Doc: "Modules to import again."}},
		},
		{
			Name: "autoscale", Title: "Set autoscaling", Doc: "Changes the limits of a pool started with --autoscale.",
			Params: []Param{
				{Name: "max", Type: Integer, Required: true, Min: 1, Doc: "Maximum number of processes."},
				{Name: "min", Type: Integer, Required: true, Doc: "Minimum number of processes."},
			},
		},
		{Name: "add_consumer", Title: "Add consumer", Doc: "Makes the worker consume from another queue.", Params: []Param{
			queue,
			{Name: "exchange", Type: Text, Doc: "Exchange to bind the queue to; named like the queue if omitted."},
			{Name: "exchange_type", Type: Text, Choices: []string{"direct", "topic", "fanout", "headers"}, Doc: "direct if omitted."},
			{Name: "routing_key", Type: Text, Doc: "Binding key; the queue's name if omitted."},
		}},
		{Name: "cancel_consumer", Title: "Cancel consumer", Dangerous: true, Doc: "Stops the worker from consuming from a queue.", Params: []Param{queue}},
		{
			Name: "drain", Title: "Drain", Dangerous: true, Steps: true,
			Doc:    "Cancels all consumers and waits until the worker runs nothing, at most for a day. Can be undone.",
			Params: []Param{{Name: "shutdown", Type: Flag, Doc: "Shut the worker down then. Tasks that wait for their time return to the queue."}},
		},
		{
			Name: "undrain", Title: "Undo drain", Steps: true,
			Doc: "Ends a drain and consumes again from the queues whose consumers it cancelled.",
		},
		{
			Name: "shutdown", Title: "Shut down", Dangerous: true, NoReply: true,
			Doc: "Stops the worker once its running tasks have finished. It does not reply.",
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
