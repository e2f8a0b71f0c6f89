package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/query"
)

// Mark is a moment to compare charts and failures with. Null means unknown.
type Mark struct {
	ID      *string  `json:"id" doc:"Null for restarts, which are not stored."`
	Kind    string   `json:"kind" enum:"deploy,restart" doc:"deploy: set by a person or a job. restart: processes of workers replaced others; restarts that follow each other within a minute are one mark."`
	At      Time     `json:"at"`
	Text    string   `json:"text" example:"v2.3.1"`
	Link    *string  `json:"link" example:"https://ci.example.com/builds/17"`
	Service *string  `json:"service" doc:"What was deployed." example:"shop"`
	Version *string  `json:"version" example:"2.3.1"`
	By      *string  `json:"by" doc:"Who set it."`
	Workers []string `json:"workers" nullable:"false" doc:"Workers that restarted; the first 100."`
}

// MarkBody is a mark to set.
type MarkBody struct {
	_ struct{} `additionalProperties:"false"`

	Text    string `json:"text" minLength:"1" maxLength:"100" example:"v2.3.1"`
	At      string `json:"at,omitempty" maxLength:"64" doc:"A time such as 2026-11-21T10:00:00Z, or the seconds since 1970 UTC. Defaults to now." example:"2026-11-21T10:00:00Z"`
	Link    string `json:"link,omitempty" maxLength:"1000" doc:"URL that begins with http:// or https://." example:"https://ci.example.com/builds/17"`
	Service string `json:"service,omitempty" maxLength:"100" example:"shop"`
	Version string `json:"version,omitempty" maxLength:"100" example:"2.3.1"`
}

// Bounds of answers about marks.
const (
	maxRestarted  = 100            // workers of one
	marksAnswered = 24 * time.Hour // unless since says otherwise
)

func fromMark(m deploys.Mark) Mark {
	return Mark{
		ID: text(m.ID), Kind: string(m.Kind), At: timeOf(m.At), Text: m.Text, Link: text(m.Link), Service: text(m.Service), Version: text(m.Version),
		By: text(m.By), Workers: append([]string{}, m.Workers[:min(len(m.Workers), maxRestarted)]...),
	}
}

type listMarks struct {
	Since string `query:"since" maxLength:"64" doc:"Start: an RFC 3339 time or an offset from now. Defaults to a day before until." example:"-24h"`
	Until string `query:"until" maxLength:"64" doc:"End: an RFC 3339 time or an offset from now. Defaults to now." example:"2026-11-21T10:00:00Z"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"Maximum number of marks to return, the newest."`
}

// MarkPath names a mark.
type MarkPath struct {
	Origin
	ID string `path:"id" doc:"Mark ID."`
}

type markInput struct {
	Origin
	Body MarkBody
}

func (a *api) registerMarks(h huma.API) {
	huma.Register(h, operation(h, auth.View, "list-marks", "/marks", "List deploys and restarts of workers, oldest first", unavailable), a.listMarks)
	if a.readOnly {
		return
	}
	add := postBody(h, auth.SetMark, "add-mark", "/marks", "Mark a deploy", unavailable)
	add.DefaultStatus = http.StatusCreated
	huma.Register(h, add, a.addMark)
	remove := operation(h, auth.SetMark, "delete-mark", "/marks/{id}", "Delete a mark", notFound, unavailable)
	remove.Method, remove.DefaultStatus = http.MethodDelete, http.StatusNoContent
	huma.Register(h, remove, a.deleteMark)
}

func (a *api) listMarks(ctx context.Context, r *listMarks) (*response[List[Mark]], error) {
	now := a.now()
	until, err := query.ParseMoment("until", r.Until, now)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	if r.Until == "" {
		until = now.Add(time.Minute) // what has just been set, by a clock that may be ahead
	}
	since := until.Add(-marksAnswered)
	if r.Since != "" {
		if since, err = query.ParseMoment("since", r.Since, now); err != nil {
			return nil, a.failed(ctx, err)
		}
	}
	if !since.Before(until) {
		return nil, a.failed(ctx, &query.Error{Param: "since", Message: "must be before until"})
	}
	found, err := a.marks(ctx, since, until, r.Limit)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &response[List[Mark]]{Body: List[Mark]{Items: mapSlice(found, fromMark)}}, nil
}

// marks returns the marks of a span of time, oldest first.
func (a *api) marks(ctx context.Context, from, to time.Time, limit int) ([]deploys.Mark, error) {
	return deploys.Read(ctx, a.backend.History(), a.backend.View, from, to, limit) //nolint:wrapcheck // it says what was read
}

func (a *api) addMark(ctx context.Context, in *markInput) (*response[Mark], error) {
	now, b := a.now(), in.Body
	m := history.Mark{Text: b.Text, Link: b.Link, Service: b.Service, Version: b.Version, By: auth.FromContext(ctx).User}
	if b.At != "" {
		at, err := query.ParseInstant(b.At, now)
		if err != nil {
			return nil, badField("at", "must be a time such as 2026-11-21T10:00:00Z")
		}
		m.At = at
	}
	m, err := deploys.Check(m, now)
	if wrong, ok := errors.AsType[*deploys.Error](err); ok {
		return nil, badField(wrong.Field, wrong.Message)
	}
	if m, err = a.backend.History().AddMark(ctx, m); err != nil {
		return nil, a.failed(ctx, err)
	}
	a.recordChange(in.http, "add mark", m.Text)
	return &response[Mark]{fromMark(deploys.Mark{Mark: m, Kind: deploys.Deploy})}, nil
}

func (a *api) deleteMark(ctx context.Context, r *MarkPath) (*struct{}, error) {
	m, err := a.backend.History().DeleteMark(ctx, r.ID)
	if errors.Is(err, history.ErrNotFound) {
		return nil, problem(http.StatusNotFound, "There is no mark "+shorten(r.ID)+".")
	}
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	a.recordChange(r.http, "delete mark", m.Text)
	return nil, nil
}
