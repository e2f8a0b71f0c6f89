package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/web/auth"
)

// DeadLetterBody names dead letters of an application's outbox.
type DeadLetterBody struct {
	_ struct{} `additionalProperties:"false"`

	IDs     []int64 `json:"ids,omitempty" nullable:"false" maxItems:"10000" doc:"IDs of dead letters. Give either ids or all."`
	All     bool    `json:"all,omitempty" doc:"All dead letters, the newest first."`
	Name    string  `json:"name,omitempty" doc:"With all, only those of this task name; a * at its end stands for any text." example:"billing.*"`
	Cap     int     `json:"cap,omitempty" minimum:"1" maximum:"10000" doc:"With all, the maximum number of dead letters. Defaults to 1,000." example:"500"`
	Confirm string  `json:"confirm,omitempty" doc:"The outbox's name, to purge or to requeue more than 100; not needed for a dry run."`
}

type deadLetterInput struct {
	SendOptions
	Name string `path:"name" doc:"Name of the outbox." example:"shop"`
	Body DeadLetterBody
}

// DeadLetterPreview says what requeuing or purging dead letters would do.
type DeadLetterPreview struct {
	Preview

	Chosen int  `json:"chosen" doc:"Number of dead letters the request would change."`
	Gone   int  `json:"gone" doc:"Number of ids of no dead letter."`
	Capped bool `json:"capped" doc:"Whether there are more dead letters than cap allows."`
}

// deadLetterRequest is a request with what was typed to confirm it.
type deadLetterRequest struct {
	command.DeadLetterRequest
	confirm string
}

// registerDeadLetters adds the operations that change dead letters of applications' outboxes.
func (a *api) registerDeadLetters(h huma.API) {
	service := a.service()
	if service == nil || !service.HasOutboxes() {
		return
	}
	for _, action := range []struct{ name, id, path, summary, description string }{
		{
			command.RequeueDeadLetters, "requeue-dead-letters", "requeue", "Requeue dead letters of an application",
			"Moves them back into the application's outbox in one transaction for each 500, as the package's admin action does.",
		},
		{command.PurgeDeadLetters, "purge-dead-letters", "purge", "Purge dead letters of an application", "Removes them for good."},
	} {
		op := postSend(h, auth.ChangeOutbox, action.id, "/app-outboxes/{name}/dead-letters/"+action.path, action.summary, notFound, conflict)
		op.Description = action.description + " Fails with 409 if Umbel's database user lacks a privilege; the message names it. " +
			"The command's reply says how many dead letters were changed."
		registerSend(a, h, op, sendSteps[deadLetterInput, deadLetterRequest, DeadLetterPreview]{
			request: func(_ context.Context, in *deadLetterInput) (deadLetterRequest, error) {
				b := in.Body
				return deadLetterRequest{command.DeadLetterRequest{
					Action: action.name, Outbox: in.Name, IDs: b.IDs, All: b.All, Name: b.Name, Cap: b.Cap,
				}, b.Confirm}, nil
			},
			preview: func(ctx context.Context, r deadLetterRequest) (DeadLetterPreview, error) {
				p, err := service.PreviewDeadLetters(ctx, r.DeadLetterRequest)
				return DeadLetterPreview{Preview: fromPreview(p.Preview), Chosen: p.Selected, Gone: p.Gone, Capped: p.Capped}, err
			},
			send: func(ctx context.Context, by command.Caller, r deadLetterRequest) (command.Receipt, error) {
				return service.ChangeDeadLetters(ctx, by, r.DeadLetterRequest, r.confirm)
			},
		})
	}
}
