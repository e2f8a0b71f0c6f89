package api

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/store"
	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/query"
)

const (
	formatCSV   = "csv"
	formatJSONL = "jsonl"
	exportPage  = 500              // tasks that are read at once
	exportStall = 30 * time.Second // how long a client may take for them
)

func (a *api) registerExport(h huma.API, operation func(id, path, summary string, statuses ...int) huma.Operation) {
	op := operation("export-tasks", "/tasks/export", "All tasks that match, as a stream",
		http.StatusBadRequest, http.StatusServiceUnavailable)
	op.Description = "Reads the list page by page while it is sent. A connection that is cut off means that not all was sent. " +
		"In CSV, text that a spreadsheet would take for a formula begins with an apostrophe."
	text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	op.Responses["200"] = &huma.Response{
		Description: "One line for each task, of CSV with a header, or of JSON as in get-task.",
		Content:     map[string]*huma.MediaType{"text/csv": text, "application/x-ndjson": text},
	}
	op.Parameters = append(taskParams(), &huma.Param{
		Name: "format", In: "query", Description: "CSV with the columns in cols, or a line of JSON for each task.",
		Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{formatCSV, formatJSONL}, Default: formatCSV},
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
	q, err := query.Parse(v)
	if wrong, ok := errors.AsType[*query.Error](err); ok {
		return nil, badParameter(wrong)
	}
	q.Limit = exportPage
	now := a.now()
	read := func(ctx context.Context) (store.Page, error) {
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
		err := send(w, newEncoder(format, q.Cols), page, func(from store.Page) (store.Page, error) {
			q = q.After(from.Next, false)
			return read(hc.Context())
		})
		if err == nil {
			return
		}
		if hc.Context().Err() == nil {
			a.logger.WarnContext(hc.Context(), "export ends early", "error", err)
		}
		panic(http.ErrAbortHandler) // the client sees that there should have been more
	}}, nil
}

// formatOf takes the format out of the parameters.
func formatOf(v url.Values) (string, error) {
	format := v.Get("format")
	v.Del("format")
	switch format {
	case "", formatCSV:
		return formatCSV, nil
	case formatJSONL:
		return formatJSONL, nil
	}
	return "", badParameter(&query.Error{Param: "format", Message: "must be csv or jsonl"})
}

func mediaTypes() map[string]string {
	return map[string]string{formatCSV: "text/csv; charset=utf-8; header=present", formatJSONL: "application/x-ndjson"}
}

// send writes page after page, each as soon as it is read.
func send(w http.ResponseWriter, e encoder, page store.Page, next func(store.Page) (store.Page, error)) error {
	control := http.NewResponseController(w)
	b := bufio.NewWriterSize(w, 64<<10)
	e.begin(b)
	for {
		// Not every server can bound a write: those that cannot have their own limits.
		_ = control.SetWriteDeadline(time.Now().Add(exportStall))
		for i := range page.Tasks {
			if err := e.task(b, FromTask(page.Tasks[i])); err != nil {
				return err
			}
		}
		if err := b.Flush(); err != nil {
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

// encoder writes tasks in one format.
type encoder struct {
	begin func(w io.Writer)
	task  func(w io.Writer, t Task) error
}

func newEncoder(format string, cols []lang.Field) encoder {
	if format == formatJSONL {
		return encoder{
			begin: func(io.Writer) {},
			task:  func(w io.Writer, t Task) error { return marshal(w, t) },
		}
	}
	fields := csvFields(cols)
	line := make([]string, len(fields))
	write := func(w io.Writer) error {
		c := csv.NewWriter(w)
		if err := c.Write(line); err != nil {
			return err
		}
		c.Flush()
		return c.Error()
	}
	return encoder{
		begin: func(w io.Writer) {
			for i, f := range fields {
				line[i] = f.name
			}
			_ = write(w) // the writer is a buffer that keeps its error
		},
		task: func(w io.Writer, t Task) error {
			for i, f := range fields {
				line[i] = f.value(&t)
			}
			return write(w)
		},
	}
}
