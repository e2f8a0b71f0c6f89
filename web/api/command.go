package api

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/history"
)

// Command is something that Umbel sends, or has sent. Null is unknown, or never.
type Command struct {
	ID        Int      `json:"id"`
	Order     Int      `json:"order" doc:"The order that it is part of."`
	Kind      string   `json:"kind" doc:"control, task or purge."`
	State     string   `json:"state" enum:"pending,in_flight,sent,done,silent,dead,expired,discarded" doc:"The last five are final; silent: somebody did not answer in time."`
	Target    string   `json:"target" doc:"To whom." example:"celery@w1"`
	Summary   string   `json:"summary" doc:"What, for people."`
	TaskID    *string  `json:"task_id" doc:"Of the task that it publishes or is about."`
	Attempts  int      `json:"attempts" doc:"How often it could not be sent."`
	Deferrals int      `json:"deferrals" doc:"How often it was put off since the broker was away."`
	LastError *string  `json:"last_error"`
	Expected  []string `json:"expected" nullable:"false" doc:"Workers that are to answer."`
	Missing   []string `json:"missing" nullable:"false" doc:"Those of them that have not."`
	Answers   []Answer `json:"answers" nullable:"false"`
	CreatedAt Time     `json:"created_at"`
	DueAt     Time     `json:"due_at" doc:"When it is to be sent, or tried again, at the earliest."`
	ExpiresAt Time     `json:"expires_at" doc:"When it is not sent any more."`
	SentAt    Time     `json:"sent_at" doc:"When the broker had it."`
	DoneAt    Time     `json:"done_at" doc:"When its state became final."`
	Actor     *string  `json:"actor" doc:"Who asked for it."`
}

// Answer is what a worker said to a command.
type Answer struct {
	Node  string `json:"node" example:"celery@w1"`
	At    Time   `json:"at"`
	Text  string `json:"text" example:"pool will grow"`
	OK    bool   `json:"ok" doc:"Whether it said yes."`
	Clock *Int   `json:"clock" doc:"Its Lamport clock when it answered."`
}

// TransformSchema lets integers that may be unknown be null.
func (Answer) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return nullable[Answer](s)
}

// FromCommand returns the command in the form of the API.
func FromCommand(c history.Command) Command {
	d := Command{
		ID: Int(c.ID), Order: Int(c.RequestID), Kind: c.Kind, State: string(c.State), Target: c.Target, Summary: c.Summary,
		TaskID: text(c.TaskID), Attempts: c.Attempts, Deferrals: c.Deferrals, LastError: text(c.LastError),
		Expected: append([]string{}, c.Expected...), Missing: []string{}, Answers: each(c.Replies, fromAnswer),
		CreatedAt: timeOf(c.CreatedAt), DueAt: timeOf(c.DueAt), ExpiresAt: timeOf(c.ExpiresAt),
		SentAt: timeOf(c.SentAt), DoneAt: timeOf(c.DoneAt), Actor: text(c.Actor),
	}
	for _, node := range c.Expected {
		if !slices.ContainsFunc(c.Replies, func(a history.Reply) bool { return a.Node == node }) {
			d.Missing = append(d.Missing, node)
		}
	}
	return d
}

func fromAnswer(a history.Reply) Answer {
	return Answer{Node: a.Node, At: timeOf(a.At), Text: a.Text, OK: a.OK, Clock: positive(a.Clock)}
}
