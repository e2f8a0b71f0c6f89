package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/web/query"
)

// MaxBody is the maximum size of a request body in bytes. It leaves room for the arguments of a task in a URL-encoded
// form, which takes up to three bytes for one.
const MaxBody = 2 << 20

// Query gives an operation its raw query parameters, to parse them as the pages do.
type Query struct{ values url.Values }

// Resolve keeps the parameters.
func (q *Query) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	q.values = u.Query()
	return nil
}

// TaskPath names a task.
type TaskPath struct {
	ID string `path:"id" doc:"Task ID."`
}

// WorkerPath names a worker.
type WorkerPath struct {
	Name string `path:"name" doc:"Node name." example:"celery@host"`
}

// strictQuery refuses what huma ignores: parameters that are not URL-encoded, repeated single-valued ones, and empty
// ones whose schema allows no empty value.
func strictQuery(h huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		refuse := func(location, message string) {
			_ = huma.WriteErr(h, ctx, http.StatusBadRequest, "", &huma.ErrorDetail{Location: location, Message: message})
		}
		u := ctx.URL()
		values, err := url.ParseQuery(u.RawQuery)
		if err != nil {
			refuse("query", err.Error())
			return
		}
		for _, p := range ctx.Operation().Parameters {
			given := values[p.Name]
			switch {
			case p.In != "query" || p.Schema.Type == huma.TypeArray:
			case len(given) > 1:
				refuse("query."+p.Name, "may be given only once")
				return
			case len(given) == 1 && given[0] == "" && (p.Schema.Type != huma.TypeString || len(p.Schema.Enum) > 0):
				refuse("query."+p.Name, "must not be empty")
				return
			}
		}
		next(ctx)
	}
}

// unmarshal decodes JSON into v. Unlike encoding/json it refuses top-level properties that are given twice or that differ
// from a known one in case; all properties of the API are in lower case.
func unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("%w at byte %d", err, syntax.Offset)
	}
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		name, _ := key.(string)
		switch {
		case seen[name]:
			return fmt.Errorf("%q is given twice", shorten(name))
		case strings.ContainsFunc(name, func(c rune) bool { return c != '_' && (c < 'a' || c > 'z') }):
			return fmt.Errorf("%q is not a known property", shorten(name))
		}
		seen[name] = true
	}
	return nil
}

// marshal writes v as JSON. It ignores write errors: the client is gone.
func marshal(w io.Writer, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, _ = w.Write(b.Bytes())
	return nil
}

// TaskQuery selects tasks.
type TaskQuery struct {
	Query
	Q      string   `query:"q" maxLength:"2048" doc:"Query in the language of docs/query.md." example:"state:failure name:billing.* run:>2s"`
	State  []string `query:"state,explode" nullable:"false" maxItems:"100" doc:"States in any case, repeated or comma-separated." example:"FAILURE"`
	Name   []string `query:"name,explode" nullable:"false" maxItems:"100" doc:"Exact task names."`
	Worker []string `query:"worker,explode" nullable:"false" maxItems:"100" doc:"Exact worker node names."`
	Root   string   `query:"root" doc:"ID of the first task of a workflow."`
	Sort   string   `query:"sort" doc:"Sort field, with a leading - for descending order. Defaults to the newest change first. Tasks without the field are omitted." example:"-run"`
	Cols   string   `query:"cols" doc:"Comma-separated columns for tables and CSV; JSON always has all fields." example:"state,name,exc"`
	Chart  string   `query:"chart" doc:"Chart above the table: range, metric and grouping, or off." example:"7d,run,worker"`
	Since  string   `query:"since" doc:"With until: only tasks whose newest event lies in this span of time." example:"2026-11-21T10:00:00Z"`
	Until  string   `query:"until" doc:"End of the span that begins at since." example:"2026-11-21T10:20:00Z"`
	Cursor string   `query:"cursor" doc:"Cursor from next or prev of an earlier response."`
}

func (q *TaskQuery) tasks() (query.Tasks, error) { return query.Parse(q.values) }
