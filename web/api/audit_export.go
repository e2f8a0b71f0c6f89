package api

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/payload"
	"github.com/umbelhq/umbel/web/query"
	"github.com/umbelhq/umbel/web/spreadsheet"
)

type exportAudit struct {
	AuditLogQuery
	Origin
	Format string `query:"format" enum:"csv,jsonl" default:"csv" doc:"csv: one line per record. jsonl: one JSON object per line."`
}

// Resolve keeps the query and the request.
func (e *exportAudit) Resolve(ctx huma.Context) []error {
	return append(e.AuditLogQuery.Resolve(ctx), e.Origin.Resolve(ctx)...)
}

func (a *api) registerAuditExport(h huma.API) {
	op := operation(h, auth.ReadAudit, "export-audit", "/audit/export", "Export all matching audit records, newest first", unavailable)
	op.Description = "Streams the log page by page. A connection that is cut off means that the export is incomplete. The export is recorded itself."
	delete(op.Responses, strconv.Itoa(http.StatusNotAcceptable))
	op.Responses["200"] = &huma.Response{
		Description: "One line per record: CSV with a header, or JSON as in list-audit.",
		Content: map[string]*huma.MediaType{
			"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}, "application/x-ndjson": {},
		},
	}
	huma.Register(h, op, a.exportAudit)
}

func (a *api) exportAudit(ctx context.Context, r *exportAudit) (*huma.StreamResponse, error) {
	q, err := query.ParseAudit(r.values, a.now())
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	f := q.Filter()
	f.Limit = exportPage
	read := func() ([]history.AuditRecord, int64, error) {
		ctx, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return a.commands.AuditLog(ctx, f)
	}
	list, next, err := read()
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", mediaTypes()[r.Format])
		hc.SetHeader("Content-Disposition", `attachment; filename="umbel-audit-`+a.now().UTC().Format("20060102T150405Z")+"."+r.Format+`"`)
		if hc.Method() == http.MethodHead {
			return
		}
		_, w := humachi.Unwrap(hc)
		e, n := NewAuditEncoder(w, r.Format), 0
		control := http.NewResponseController(w)
		for {
			_ = control.SetWriteDeadline(time.Now().Add(exportStall))
			if a.hides {
				list = payload.Records(list)
			}
			for _, record := range list {
				if err = e.Record(record); err != nil {
					break
				}
				n++
			}
			if err == nil {
				err = e.Flush()
			}
			if e := control.Flush(); err == nil && !errors.Is(e, http.ErrNotSupported) {
				err = e
			}
			if err != nil || next == 0 {
				break
			}
			f.Before = next
			if list, next, err = read(); err != nil {
				break
			}
		}
		a.recordExport(r.http, "export audit log", map[string]any{"query": r.http.URL.RawQuery, "format": r.Format, "records": n}, err)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}}, nil
}

// recordExport records an export that has ended, with an error if it is incomplete.
func (a *api) recordExport(r *http.Request, action string, detail map[string]any, failed error) {
	if a.auditLog == nil || r == nil {
		return
	}
	record := auth.AuditRecord(r)
	record.Kind, record.Action, record.Outcome = history.AuditExport, action, history.AuditAccepted
	if failed != nil {
		record.Outcome = history.AuditFailed
	}
	b, err := json.Marshal(detail)
	if err == nil {
		record.Detail = string(b)
		err = a.auditLog.Append(context.WithoutCancel(r.Context()), record)
	}
	if err != nil {
		a.logger.ErrorContext(r.Context(), "record export", "action", action, "error", err)
	}
}

// recordChange records a change of what users share. An error is logged: what is done is done.
func (a *api) recordChange(r *http.Request, action, target string) {
	if a.auditLog == nil || r == nil {
		return
	}
	record := auth.AuditRecord(r)
	record.Kind, record.Action, record.Target = history.AuditView, action, target
	if err := a.auditLog.Append(context.WithoutCancel(r.Context()), record); err != nil {
		a.logger.ErrorContext(r.Context(), "write audit record", "action", action, "error", err)
	}
}

// AuditEncoder writes audit records in an export format.
type AuditEncoder struct {
	json io.Writer
	csv  *csv.Writer // nil for JSONL
}

// NewAuditEncoder returns an AuditEncoder that writes to w.
func NewAuditEncoder(w io.Writer, format string) *AuditEncoder {
	if format == FormatJSONL {
		return &AuditEncoder{json: w}
	}
	e := &AuditEncoder{csv: csv.NewWriter(w)}
	_ = e.csv.Write([]string{
		"id", "at", "kind", "outcome", "actor", "method", "role", "remote_addr", "endpoint", "action", "target", "detail", "commands",
		"request_id", "hash",
	}) // Flush has the error
	return e
}

// Record writes a record.
func (e *AuditEncoder) Record(r history.AuditRecord) error {
	a := FromAudit(r)
	if e.csv == nil {
		return marshal(e.json, a)
	}
	request := ""
	if r.FirstCommand != 0 {
		request = strconv.FormatInt(r.FirstCommand, 10)
	}
	return e.csv.Write([]string{
		strconv.FormatInt(r.ID, 10), a.At.String(), a.Kind, a.Outcome, spreadsheet.Text(r.Actor), spreadsheet.Text(r.Method),
		spreadsheet.Text(r.Role), spreadsheet.Text(r.RemoteAddr), spreadsheet.Text(r.Endpoint), spreadsheet.Text(r.Action),
		spreadsheet.Text(r.Target), spreadsheet.Text(r.Detail), strconv.Itoa(r.Commands), request, r.Hash,
	})
}

// Flush writes what is buffered.
func (e *AuditEncoder) Flush() error {
	if e.csv == nil {
		return nil
	}
	e.csv.Flush()
	return e.csv.Error()
}
