package web

import (
	"context"
	"net/http"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/templates"
)

// sample is how many messages are shown of those that a purge would remove.
const sample = 5

// askPurge says what purging a queue would remove, and asks for its name.
func (p *forms) askPurge(w http.ResponseWriter, r *http.Request) {
	v, err := p.purgeForm(r.Context(), r.URL.Query().Get("queue"))
	p.showAct(w, r, v, err)
}

// purgeForm is the form that purges a queue. Without a Preview the error says why it cannot be.
func (p *forms) purgeForm(ctx context.Context, queue string) (templates.Form, error) {
	v := templates.Form{
		Section: templates.SectionQueues, Title: "Purge queue " + queue, Path: "/act/purge", Danger: true,
		Description: "Messages already delivered to workers are not removed. This cannot be undone.",
		Crumbs: []templates.Link{
			{Text: "Queues", Href: p.urls.Prefix + "/queues"},
			{Text: queue, Href: p.urls.Prefix + templates.QueuePath(queue)},
		},
		Hidden: []templates.Param{{Name: "queue", Value: queue}},
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	preview, err := p.service().PreviewPurge(ctx, queue)
	if err != nil {
		v.NothingToDo, v.Preview = true, &templates.Preview{Preview: command.Preview{Summary: "The queue is empty."}}
		return v, err
	}
	v.Preview = &templates.Preview{Preview: preview}
	v.Preview.Targets = nil // the title names it
	lost := p.queues.next(ctx, queue)
	lost.List = lost.List[:min(len(lost.List), sample)]
	v.Preview.Lost = &lost
	return v, nil
}

// purge purges a queue.
func (p *forms) purge(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	queue := r.PostFormValue("queue")
	receipt, err := p.service().Purge(r.Context(), p.by(r), queue, r.PostFormValue(templates.ConfirmParam))
	if err == nil {
		p.taken(w, r, receipt)
		return
	}
	v, unknown := p.purgeForm(r.Context(), queue)
	if unknown != nil {
		err = unknown
	}
	p.showAct(w, r, v, err)
}
