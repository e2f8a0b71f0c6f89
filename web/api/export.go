package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
)

const (
	exportPage  = 500              // tasks that are read at once
	exportStall = 30 * time.Second // how long a client may take for them
)

type exportTasks struct {
	TaskQuery
	Origin
	Format string `query:"format" enum:"csv,jsonl" default:"csv" doc:"csv: the columns in cols. jsonl: one JSON object per line."`
}

// Resolve keeps the query and the request.
func (e *exportTasks) Resolve(ctx huma.Context) []error {
	return append(e.TaskQuery.Resolve(ctx), e.Origin.Resolve(ctx)...)
}

func (a *api) registerExport(h huma.API) {
	op := operation(h, auth.Export, "export-tasks", "/tasks/export", "Export all matching tasks", unavailable)
	op.Description = "Streams the list page by page. A connection that is cut off means that the export is incomplete. " +
		"In CSV, an apostrophe precedes text that a spreadsheet would take for a formula."
	delete(op.Responses, strconv.Itoa(http.StatusNotAcceptable)) // format says what it is, whatever the client takes
	op.Responses["200"] = &huma.Response{
		Description: "One line per task: CSV with a header, or JSON as in get-task.",
		Content: map[string]*huma.MediaType{
			"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}, "application/x-ndjson": {},
		},
	}
	huma.Register(h, op, a.export)
}

// export streams the matching tasks. It reads the first page before it sends the header, so that errors have a status.
func (a *api) export(ctx context.Context, r *exportTasks) (*huma.StreamResponse, error) {
	q, err := r.tasks()
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	q.Limit = exportPage
	now := a.now()
	read := func(ctx context.Context) (history.TaskPage, error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return a.backend.Tasks(ctx, q.Request(now))
	}
	page, err := read(ctx)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", mediaTypes()[r.Format])
		hc.SetHeader("Content-Disposition", `attachment; filename="umbel-tasks-`+now.UTC().Format("20060102T150405Z")+"."+r.Format+`"`)
		if hc.Method() == http.MethodHead {
			return
		}
		_, w := humachi.Unwrap(hc)
		n := len(page.Tasks)
		err := send(w, NewEncoder(w, r.Format, q.Cols), page, func(from history.TaskPage) (history.TaskPage, error) {
			q = q.After(from.Next, false)
			page, err := read(ctx)
			n += len(page.Tasks)
			return page, err
		})
		a.recordExport(r.http, "export tasks", map[string]any{"query": r.http.URL.RawQuery, "format": r.Format, "tasks": n}, err)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			a.logger.WarnContext(ctx, "export ends early", "error", err)
		}
		panic(http.ErrAbortHandler) // the client sees that there should have been more
	}}, nil
}

func mediaTypes() map[string]string {
	return map[string]string{FormatCSV: "text/csv; charset=utf-8; header=present", FormatJSONL: "application/x-ndjson"}
}

// send writes page after page.
func send(w http.ResponseWriter, e *Encoder, page history.TaskPage, next func(history.TaskPage) (history.TaskPage, error)) error {
	control := http.NewResponseController(w)
	for {
		// Not every server supports deadlines; those that do not have limits of their own.
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
