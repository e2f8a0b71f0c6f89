package api

import (
	"github.com/umbelhq/umbel/monitor/history"
)

// Command is a message that Umbel sends to one recipient. Null means unknown or never.
type Command struct {
	ID        Int      `json:"id"`
	RequestID Int      `json:"request_id" doc:"ID of the request the command belongs to."`
	Kind      string   `json:"kind" doc:"What the command does: control, task, purge, requeue_dead_letters or purge_dead_letters."`
	State     string   `json:"state" enum:"pending,in_flight,sent,done,no_reply,dead,expired,discarded" doc:"The last five states are final. no_reply: a worker did not reply in time."`
	Target    string   `json:"target" doc:"Recipient." example:"celery@w1"`
	Summary   string   `json:"summary" doc:"Human-readable description."`
	TaskID    *string  `json:"task_id" doc:"Task that the command publishes or acts on."`
	Attempts  int      `json:"attempts" doc:"Number of failed attempts to send the command."`
	Deferrals int      `json:"deferrals" doc:"Number of times sending was postponed because the broker was unavailable."`
	LastError *string  `json:"last_error"`
	Expected  []string `json:"expected" nullable:"false" doc:"Workers expected to reply."`
	Missing   []string `json:"missing" nullable:"false" doc:"Expected workers that have not replied."`
	Replies   []Reply  `json:"replies" nullable:"false"`
	CreatedAt Time     `json:"created_at"`
	DueAt     Time     `json:"due_at" doc:"Earliest time of the next attempt."`
	ExpiresAt Time     `json:"expires_at" doc:"Time after which the command is no longer sent."`
	SentAt    Time     `json:"sent_at" doc:"When the broker accepted it."`
	DoneAt    Time     `json:"done_at" doc:"When it reached a final state."`
	Actor     *string  `json:"actor" doc:"User who made the request."`
	Effect    *Effect  `json:"effect" doc:"What became of the task that a command was to revoke or terminate; null of other commands, of those that were not sent, and in lists."`
}

// Effect is what became of a task, as far as events tell. They do not tell which of several commands did it.
type Effect struct {
	Text  string `json:"text" example:"revoked before it began"`
	Grade string `json:"grade" enum:"unknown,consistent,proved" doc:"How well it is founded: proved if events leave no other possibility."`
}

// Reply is a worker's reply to a command.
type Reply struct {
	Node  string `json:"node" example:"celery@w1"`
	At    Time   `json:"at"`
	Text  string `json:"text" example:"pool will grow"`
	OK    bool   `json:"ok" doc:"Whether the worker accepted the command."`
	Clock *Int   `json:"clock" doc:"Lamport clock of the reply."`
}

// FromCommand returns the command in the form of the API.
func FromCommand(c history.Command) Command {
	return Command{
		ID: Int(c.ID), RequestID: Int(c.RequestID), Kind: c.Kind, State: string(c.State), Target: c.Target, Summary: c.Summary,
		TaskID: text(c.TaskID), Attempts: c.Attempts, Deferrals: c.Deferrals, LastError: text(c.LastError),
		Expected: append([]string{}, c.Expected...), Missing: append([]string{}, c.Missing()...), Replies: mapSlice(c.Replies, fromReply),
		CreatedAt: timeOf(c.CreatedAt), DueAt: timeOf(c.DueAt), ExpiresAt: timeOf(c.ExpiresAt),
		SentAt: timeOf(c.SentAt), DoneAt: timeOf(c.DoneAt), Actor: text(c.Actor),
	}
}

func fromReply(a history.Reply) Reply {
	return Reply{Node: a.Node, At: timeOf(a.At), Text: a.Text, OK: a.OK, Clock: positive(a.Clock)}
}
