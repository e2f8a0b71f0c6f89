package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/remote"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/fair"
	"github.com/umbelhq/umbel/web/query"
	"github.com/umbelhq/umbel/web/views"
)

// Problem is an error response (RFC 9457).
type Problem struct { //nolint:errname // its name in the OpenAPI document
	huma.ErrorModel

	Parameter string `json:"parameter,omitempty" doc:"Name of the invalid query parameter." example:"limit"`
	Offset    *int   `json:"offset,omitempty" doc:"Byte offset of the error in q." example:"14"`
	Length    *int   `json:"length,omitempty" doc:"Length of the error in bytes."`
	Nearest   string `json:"nearest,omitempty" doc:"Closest known name." example:"name"`
}

func problem(status int, detail string, errs ...*huma.ErrorDetail) *Problem {
	return &Problem{ErrorModel: huma.ErrorModel{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Errors: errs,
	}}
}

// badField reports an invalid field of the body.
func badField(path, message string) *Problem {
	return problem(http.StatusBadRequest, "Field "+path+" "+message+".", &huma.ErrorDetail{Location: "body." + path, Message: message})
}

// humaContext has a name that does not clash with its method Context when embedded.
type humaContext = huma.Context

// statusContext answers 400 where huma says 422, which is kept for a reused Idempotency-Key.
type statusContext struct {
	humaContext
	invalid bool
}

// SetStatus sets the response status.
func (c *statusContext) SetStatus(status int) {
	if c.invalid {
		status = http.StatusBadRequest
	}
	c.humaContext.SetStatus(status)
}

// Unwrap returns the context of the router.
func (c *statusContext) Unwrap() huma.Context { return c.humaContext }

// maxErrors bounds the errors of a problem.
const maxErrors = 10

// problems is a huma.Transformer that turns huma's errors into Problems. It leaves out the values that were sent.
func problems(ctx huma.Context, _ string, v any) (any, error) {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	c, ok := ctx.(*statusContext)
	if ok && m.Status == http.StatusUnprocessableEntity {
		m.Status, c.invalid = http.StatusBadRequest, true
	}
	p := problem(m.Status, sentence(m.Detail))
	slices.SortStableFunc(m.Errors, func(a, b *huma.ErrorDetail) int { return cmp.Compare(a.Location, b.Location) })
	var said []string
	for _, e := range m.Errors[:min(len(m.Errors), maxErrors)] {
		e := huma.ErrorDetail{Location: shorten(e.Location), Message: shorten(e.Message)}
		p.Errors, said = append(p.Errors, &e), append(said, e.Location+": "+e.Message)
	}
	if len(said) > 0 {
		p.Detail = strings.Join(said, "; ") + "."
		if name, ok := strings.CutPrefix(p.Errors[0].Location, "query."); ok {
			p.Parameter = name
		}
	}
	return p, nil
}

// badParameter reports an invalid query parameter.
func badParameter(e *query.Error) *Problem {
	p := problem(http.StatusBadRequest, "Parameter "+e.Error()+".", &huma.ErrorDetail{Location: "query." + e.Param, Message: e.Message})
	p.Parameter = e.Param
	if e.Query != nil {
		p.Offset, p.Length, p.Nearest = &e.Query.Offset, &e.Query.Length, e.Query.Nearest
	}
	return p
}

// failed returns the problem to answer an error with. It logs errors that are not the client's and hides their text.
func (a *api) failed(ctx context.Context, err error) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return badParameter(wrong)
	}
	if wrong, ok := errors.AsType[lang.UnresolvedError](err); ok {
		return badParameter(&query.Error{Param: "q", Message: "is invalid: " + wrong.Error()})
	}
	if wrong, ok := errors.AsType[*command.Error](err); ok {
		return refused(wrong)
	}
	if wrong, ok := errors.AsType[*views.Error](err); ok {
		p := problem(http.StatusBadRequest, wrong.Message)
		if wrong.Field != "" {
			p.Errors = []*huma.ErrorDetail{{Location: "body." + wrong.Field, Message: wrong.Message}}
		}
		return p
	}
	if why, ok := errors.AsType[*auth.Error](err); ok {
		return problem(why.Status, why.Message)
	}
	switch {
	case errors.Is(err, history.ErrKeyReused):
		return problem(http.StatusUnprocessableEntity, "This Idempotency-Key was used for a different request.")
	case errors.Is(err, remote.ErrUnavailable):
		return problem(http.StatusServiceUnavailable, "The broker is unavailable.")
	case errors.Is(err, fair.ErrBusy):
		return problem(http.StatusServiceUnavailable, "Too many searches from this client are waiting; try again in a moment.")
	}
	a.logger.WarnContext(ctx, "access history", "error", err)
	return problem(http.StatusServiceUnavailable, "The history is unavailable; see Umbel's log.")
}

// refused converts an error of the command service.
func refused(e *command.Error) *Problem {
	status := http.StatusBadRequest
	switch e.Kind {
	case command.NotFound:
		status = http.StatusNotFound
	case command.Conflict:
		status = http.StatusConflict
	case command.Invalid:
	}
	p := problem(status, sentence(e.Message))
	p.Nearest = e.Nearest
	if e.Field != "" {
		p.Errors = []*huma.ErrorDetail{{Location: "body." + e.Field, Message: e.Message}}
	}
	return p
}

func taskNotFound(id, nearest string) *Problem {
	p := problem(http.StatusNotFound,
		fmt.Sprintf("Task %q not found: no event of it was received, or it was removed after its retention period.", shorten(id)))
	p.Nearest = nearest
	return p
}

func workerNotFound(name string, known []string) *Problem {
	p := problem(http.StatusNotFound, fmt.Sprintf("No worker is named %q.", shorten(name)))
	if p.Nearest = nearestWorker(name, known); p.Nearest != "" {
		p.Detail = fmt.Sprintf("No worker is named %q; the nearest is %q.", shorten(name), p.Nearest)
	}
	return p
}

// Refuse writes a problem, for handlers in front of the API.
func Refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Cache-Control", "no-store")
	problem(status, detail).write(w)
}

const problemType = "application/problem+json"

// write writes the problem where huma does not.
func (p *Problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client has gone
}

// sentence capitalizes a message and adds a full stop. It leaves a leading path, such as args[2].price, alone.
func sentence(s string) string {
	if word, _, _ := strings.Cut(s, " "); !strings.ContainsAny(word, "[._") {
		first, n := utf8.DecodeRuneInString(s)
		s = string(unicode.ToUpper(first)) + s[n:]
	}
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}

// shorten truncates text of a client before it is echoed.
func shorten(s string) string { return truncate.Text(s, 200) }

// nearestWorker returns a known node name that contains name, else the most similar one, empty if none is close.
func nearestWorker(name string, known []string) string {
	lower := strings.ToLower(name)
	i := slices.IndexFunc(known, func(k string) bool { return name != "" && strings.Contains(strings.ToLower(k), lower) })
	if i >= 0 {
		return known[i]
	}
	return lang.Nearest(name, known)
}
