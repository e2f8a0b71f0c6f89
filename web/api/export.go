package api

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/query"
)

const (
	exportPage  = 500 // tasks that are read at once
	paramLimit  = "limit"
	exportStall = 30 * time.Second // how long a client may take for them
)

func (a *api) registerExport(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	op := operation("export-tasks", "/tasks/export", "All tasks that match, as a stream",
		http.StatusBadRequest, http.StatusServiceUnavailable)
	op.Description = "Reads the list page by page while it is sent. A connection that is cut off means that not all was sent. " +
		"In CSV, an apostrophe stands before what a spreadsheet would take for a formula."
	delete(op.Responses, strconv.Itoa(http.StatusNotAcceptable)) // format says what it is, whatever the client takes
	op.Responses["200"] = &huma.Response{
		Description: "One line for each task, of CSV with a header, or of JSON as in get-task.",
		Content: map[string]*huma.MediaType{
			"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}, "application/x-ndjson": {},
		},
	}
	limit := func(p *huma.Param) bool { return p.Name == paramLimit }
	op.Parameters = append(slices.DeleteFunc(taskParams(), limit), &huma.Param{
		Name: "format", In: "query", Description: "CSV with the columns in cols, or a line of JSON for each task.",
		Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{FormatCSV, FormatJSONL}, Default: FormatCSV},
	})
	huma.Register(h, op, a.export)
}

// export streams the list that a request asks for. The first page is read before the answer begins, so that
// what is wrong has a status of its own.
func (a *api) export(ctx context.Context, r *request) (*huma.StreamResponse, error) {
	v, err := r.values()
	if err != nil {
		return nil, err
	}
	format, err := formatOf(v)
	if err != nil {
		return nil, err
	}
	if v.Has(paramLimit) {
		return nil, badParameter(&query.Error{Param: paramLimit, Message: "is not a parameter of exports: they have all tasks that match"})
	}
	q, err := query.Parse(v)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return nil, badParameter(wrong)
	}
	q.Limit = exportPage
	now := a.now()
	read := func(ctx context.Context) (history.TaskPage, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return a.backend.Tasks(ctx, q.Request(now))
	}
	page, err := read(ctx)
	if err != nil {
		return nil, a.unreadable(ctx, err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", mediaTypes()[format])
		hc.SetHeader("Content-Disposition", `attachment; filename="umbel-tasks-`+now.UTC().Format("20060102T150405Z")+"."+format+`"`)
		if hc.Method() == http.MethodHead {
			return
		}
		_, w := humachi.Unwrap(hc)
		err := send(w, NewEncoder(w, format, q.Cols), page, func(from history.TaskPage) (history.TaskPage, error) {
			q = q.After(from.Next, false)
			return read(ctx)
		})
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			a.logger.WarnContext(ctx, "export ends early", "error", err)
		}
		panic(http.ErrAbortHandler) // the client sees that there should have been more
	}}, nil
}

// formatOf takes the format out of the parameters.
func formatOf(v url.Values) (string, error) {
	format := v.Get("format")
	v.Del("format")
	switch format {
	case "", FormatCSV:
		return FormatCSV, nil
	case FormatJSONL:
		return FormatJSONL, nil
	}
	return "", badParameter(&query.Error{Param: "format", Message: "must be csv or jsonl"})
}

func mediaTypes() map[string]string {
	return map[string]string{FormatCSV: "text/csv; charset=utf-8; header=present", FormatJSONL: "application/x-ndjson"}
}

// send writes page after page, each as soon as it is read.
func send(w http.ResponseWriter, e *Encoder, page history.TaskPage, next func(history.TaskPage) (history.TaskPage, error)) error {
	control := http.NewResponseController(w)
	for {
		// Not every server can bound a write: those that cannot have their own limits.
		_ = control.SetWriteDeadline(time.Now().Add(exportStall))
		for i := range page.Tasks {
			if err := e.Task(FromTask(page.Tasks[i])); err != nil {
				return err
			}
		}
		if err := e.Flush(); err != nil {
			return err
		}
		if err := control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err
		}
		if page.Next == nil {
			return nil
		}
		var err error
		if page, err = next(page); err != nil {
			return err
		}
	}
}
