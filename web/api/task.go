package api

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/search"
)

// Task is a task. Null means unknown.
type Task struct {
	ID        string  `json:"id"`
	Name      *string `json:"name"`
	State     string  `json:"state" doc:"Celery state in upper case, or a custom state." example:"SUCCESS"`
	Args      *string `json:"args" doc:"Python repr as sent."`
	Kwargs    *string `json:"kwargs" doc:"Python repr as sent."`
	Result    *string `json:"result" doc:"Python repr as sent."`
	Exception *string `json:"exception"`
	Traceback *string `json:"traceback"`

	Worker     *string `json:"worker" doc:"Node name of the latest execution's worker."`
	Client     *string `json:"client" doc:"Node name of the publisher."`
	Queue      *string `json:"queue"`
	Exchange   *string `json:"exchange"`
	RoutingKey *string `json:"routing_key"`
	Priority   *Int    `json:"priority"`
	Retries    *Int    `json:"retries"`
	ETA        *string `json:"eta" doc:"RFC 3339 in UTC with microseconds, or the text as sent if it is not an ISO 8601 time."`
	Expires    *string `json:"expires" doc:"RFC 3339 in UTC with microseconds, or the text as sent if it is not an ISO 8601 time."`

	RootID   *string  `json:"root_id"`
	ParentID *string  `json:"parent_id"`
	Children []string `json:"children" nullable:"false" doc:"IDs of the tasks it published."`
	GroupID  *string  `json:"group_id"`

	SentAt      Time `json:"sent_at" doc:"Wall clock of the sender, like all times of a task."`
	ReceivedAt  Time `json:"received_at"`
	StartedAt   Time `json:"started_at"`
	SucceededAt Time `json:"succeeded_at"`
	FailedAt    Time `json:"failed_at"`
	RetriedAt   Time `json:"retried_at"`
	RevokedAt   Time `json:"revoked_at"`
	RejectedAt  Time `json:"rejected_at"`
	UpdatedAt   Time `json:"updated_at" doc:"Time of the latest event."`

	WaitSeconds    *float64 `json:"wait_seconds" doc:"Time from sent, or from received if that is unknown, to started. Clocks that are known to be off are corrected; null if clocks disagree."`
	WaitRaw        *float64 `json:"wait_raw_seconds" doc:"The same by the times as they were sent: negative where a clock is off."`
	WaitLow        *float64 `json:"wait_low_seconds,omitempty" doc:"In the answer for one task: how long it waited at least, by what is known of the clocks. Left out if that says nothing."`
	WaitHigh       *float64 `json:"wait_high_seconds,omitempty" doc:"In the answer for one task: how long it waited at most."`
	RuntimeSeconds *float64 `json:"runtime_seconds" doc:"Run time measured by the worker."`
	Clock          *Int     `json:"clock" doc:"Corrected Lamport clock of the latest event. Lists are ordered by it."`

	Executions []Execution `json:"executions" nullable:"false" doc:"Executions, oldest first; the fields above show the last one."`

	RevokedReason *string `json:"revoked_reason" doc:"expired: the task was not started in time. terminated: it was stopped while running. revoked: it was cancelled before it started."`
	RevokedSignal *Int    `json:"revoked_signal" doc:"Number of the signal the task was terminated with."`

	Redelivered bool        `json:"redelivered" doc:"An attempt was received again after it had started."`
	Orphaned    bool        `json:"orphaned" doc:"The process running the task exited without reporting a result."`
	Returned    bool        `json:"returned" doc:"The worker process exited before starting the task; the broker redelivers it."`
	Lost        *Conclusion `json:"lost" doc:"Why the task is not expected to finish; null otherwise. Orphaned tasks are lost, too."`
	Dismissed   *Conclusion `json:"dismissed" doc:"Set if a user dismissed the task."`
	Truncated   bool        `json:"truncated" doc:"Text was truncated or dropped to bound memory."`
}

// Conclusion says why an unfinished task is not expected to finish. The next event of the task revokes it.
type Conclusion struct {
	Reason   string `json:"reason" enum:"orphaned,not_running,expired,backend,dismissed"`
	Evidence string `json:"evidence" doc:"Explanation. For a dismissed task, the user; empty if unknown."`
	At       Time   `json:"at" doc:"When Umbel concluded it, by its own clock."`
}

func fromConclusion(k *state.Conclusion) *Conclusion {
	if k == nil {
		return nil
	}
	return &Conclusion{Reason: string(k.Reason), Evidence: k.Evidence, At: Time(k.At)}
}

// FromTask returns the task in the form of the API.
func FromTask(t state.Task) Task {
	d := Task{
		ID: t.ID, Name: t.Name, State: string(t.State),
		Args: t.Args, Kwargs: t.Kwargs, Result: t.Result, Exception: t.Exception, Traceback: t.Traceback,
		Worker: t.Worker, Client: t.Client, Queue: t.Queue, Exchange: t.Exchange, RoutingKey: t.RoutingKey,
		Retries: integer(t.Retries), ETA: isoTime(t.ETA), Expires: isoTime(t.Expires),
		RootID: t.RootID, ParentID: t.ParentID, Children: append([]string{}, t.Children...),
		SentAt: Time(t.SentAt), ReceivedAt: Time(t.ReceivedAt), StartedAt: Time(t.StartedAt),
		SucceededAt: Time(t.SucceededAt), FailedAt: Time(t.FailedAt), RetriedAt: Time(t.RetriedAt),
		RevokedAt: Time(t.RevokedAt), RejectedAt: Time(t.RejectedAt), UpdatedAt: Time(t.UpdatedAt),
		WaitSeconds: number(t.WaitSeconds), RuntimeSeconds: number(t.RuntimeSeconds),
		Clock:       positive(t.Stamp.Clock),
		Executions:  make([]Execution, len(t.Executions)),
		Redelivered: t.Redelivered, Orphaned: t.Orphaned, Lost: fromConclusion(t.Lost), Dismissed: fromConclusion(t.Dismissed), Returned: t.Returned, Truncated: t.Truncated,
	}
	if t.WaitedSince != 0 && t.StartedAt != 0 {
		d.WaitRaw = new(float64(t.StartedAt-t.WaitedSince) / 1e6)
	}
	d.RevokedReason, d.RevokedSignal = revoked(t.Revocation)
	for i, e := range t.Executions {
		d.Executions[i] = fromExecution(e)
	}
	return d
}

// Execution is one execution of a task. Null means unknown.
type Execution struct {
	Attempt   Int     `json:"attempt" doc:"Number of retries when it was received; 0 for the first attempt."`
	Worker    *string `json:"worker"`
	PID       *Int    `json:"pid"`
	State     string  `json:"state"`
	Name      *string `json:"name" doc:"Task name it was received under, which differs if the task was replaced."`
	Inferred  bool    `json:"inferred" doc:"The task-received event was not seen."`
	Replaced  bool    `json:"replaced" doc:"The execution ended by replacing the task with another one of the same ID."`
	Result    *string `json:"result"`
	Exception *string `json:"exception"`
	Traceback *string `json:"traceback"`

	ReceivedAt  Time `json:"received_at"`
	StartedAt   Time `json:"started_at"`
	SucceededAt Time `json:"succeeded_at"`
	FailedAt    Time `json:"failed_at"`
	RetriedAt   Time `json:"retried_at"`
	RevokedAt   Time `json:"revoked_at"`
	RejectedAt  Time `json:"rejected_at"`

	RuntimeSeconds *float64 `json:"runtime_seconds"`

	RevokedReason *string `json:"revoked_reason"`
	RevokedSignal *Int    `json:"revoked_signal"`
}

func fromExecution(e state.Execution) Execution {
	x := Execution{
		Attempt: Int(e.Attempt), Worker: text(e.Worker), PID: positive(e.PID), State: string(e.State),
		Name: e.Name, Inferred: e.Inferred, Replaced: e.Replaced, Result: e.Result, Exception: e.Exception, Traceback: e.Traceback,
		ReceivedAt: Time(e.ReceivedAt), StartedAt: Time(e.StartedAt), SucceededAt: Time(e.SucceededAt),
		FailedAt: Time(e.FailedAt), RetriedAt: Time(e.RetriedAt), RevokedAt: Time(e.RevokedAt),
		RejectedAt: Time(e.RejectedAt), RuntimeSeconds: number(e.RuntimeSeconds),
	}
	x.RevokedReason, x.RevokedSignal = revoked(e.Revocation)
	return x
}

// revoked says why a task was revoked, nil if it was not.
func revoked(r *state.Revocation) (reason *string, signal *Int) {
	if r == nil {
		return nil, nil
	}
	return new(r.Reason()), positive(r.Signum)
}

// TaskEvent is one event of a task. Null means unknown.
type TaskEvent struct {
	Type          string `json:"type" example:"task-received"`
	Hostname      string `json:"hostname" doc:"Node name of the sender."`
	PID           *Int   `json:"pid"`
	OccurredAt    Time   `json:"occurred_at" doc:"Wall clock of the sender."`
	Clock         *Int   `json:"clock" doc:"Lamport clock as sent."`
	RepairedClock *Int   `json:"repaired_clock" doc:"Corrected Lamport clock, comparable across processes."`
}

func fromTaskEvent(e state.TaskEvent) TaskEvent {
	return TaskEvent{
		Type: e.Type, Hostname: e.Hostname, PID: positive(e.PID), OccurredAt: Time(e.Stamp.Micros),
		Clock: positive(e.Clock), RepairedClock: positive(e.Stamp.Clock),
	}
}

// text returns s, nil if it is empty, for unknown.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

type listTasks struct {
	TaskQuery
	Limit int `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of tasks to return."`
}

// registerTasks adds the operations that read tasks.
func (a *api) registerTasks(h huma.API) {
	huma.Register(h, operation(h, auth.View, "list-tasks", "/tasks", "List tasks, newest change first", unavailable), a.tasks)
	huma.Register(h, operation(h, auth.View, "get-task", "/tasks/{id}", "Get a task", notFound, unavailable), a.task)
	huma.Register(h, operation(h, auth.View, "list-task-events", "/tasks/{id}/events", "List the events of a task in causal order",
		notFound, unavailable), a.taskEvents)
}

func (a *api) tasks(ctx context.Context, r *listTasks) (*response[Tasks], error) {
	q, err := r.tasks()
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	page, err := search.Read(ctx, a.backend, q, a.now())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &response[Tasks]{fromPage(page)}, nil
}

func (a *api) task(ctx context.Context, r *TaskPath) (*response[Task], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	t, err := a.backend.Task(ctx, r.ID)
	if err != nil {
		return nil, a.taskProblem(ctx, r.ID, err)
	}
	d := FromTask(t)
	a.backend.View(func(c state.View) {
		if w, ok := c.Waited(&t); ok {
			d.WaitLow, d.WaitHigh = w.LowSeconds(), w.HighSeconds()
		}
	})
	return &response[Task]{d}, nil
}

func (a *api) taskEvents(ctx context.Context, r *TaskPath) (*response[List[TaskEvent]], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	events, err := a.backend.TaskEvents(ctx, r.ID)
	if err != nil {
		return nil, a.taskProblem(ctx, r.ID, err)
	}
	return &response[List[TaskEvent]]{onePage(events, fromTaskEvent)}, nil
}

func (a *api) taskProblem(ctx context.Context, id string, err error) error {
	if errors.Is(err, history.ErrNotFound) {
		return taskNotFound(id, command.NearestTask(ctx, a.backend, id, a.now()))
	}
	return a.failed(ctx, err)
}
