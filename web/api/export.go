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
)

const (
	exportPage  = 500              // tasks that are read at once
	exportStall = 30 * time.Second // how long a client may take for them
)

type exportTasks struct {
	TaskQuery
	Format string `query:"format" enum:"csv,jsonl" default:"csv" doc:"csv: the columns in cols. jsonl: one JSON object per line."`
}

func (a *api) registerExport(h huma.API) {
	op := operation(h, "export-tasks", "/tasks/export", "All tasks that match, as a stream", unavailable)
	op.Description = "Reads the list page by page while it is sent. A connection that is cut off means that not all was sent. " +
		"In CSV, an apostrophe stands before what a spreadsheet would take for a formula."
	delete(op.Responses, strconv.Itoa(http.StatusNotAcceptable)) // format says what it is, whatever the client takes
	op.Responses["200"] = &huma.Response{
		Description: "One line for each task, of CSV with a header, or of JSON as in get-task.",
		Content: map[string]*huma.MediaType{
			"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}, "application/x-ndjson": {},
		},
	}
	huma.Register(h, op, a.export)
}

// export streams the list that a request asks for. The first page is read before the answer begins, so that
// what is wrong has a status of its own.
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
		err := send(w, NewEncoder(w, r.Format, q.Cols), page, func(from history.TaskPage) (history.TaskPage, error) {
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
