package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/query"
)

// invalid keeps the query, says what is wrong with it, and lists what the part before that
// asks for. It does not change by itself.
func (p *tasksPage) invalid(ctx context.Context, q query.Tasks, v url.Values, wrong *query.Error) (page, error) {
	if wrong.Query != nil {
		q = q.Where(goodPart(q.Text, wrong.Query.Offset))
	}
	q = q.First()
	pg, err := p.list(ctx, q)
	if err != nil {
		return page{}, err
	}
	view, _ := pg.view.(templates.Tasks)
	view.Newer, view.Older, view.Newest, view.Broader, view.Exports, view.Selection = "", "", "", nil, nil, nil
	view.Query.Error = p.queryError(q, v, wrong)
	if wrong.Query != nil {
		view.Query.Text = strings.TrimSpace(v.Get("q"))
	}
	pg.static, pg.status, pg.url, pg.view = true, http.StatusBadRequest, "/tasks?"+v.Encode(), view
	return pg, nil
}

// queryError parts the query where it is wrong.
func (p *tasksPage) queryError(q query.Tasks, v url.Values, wrong *query.Error) *templates.QueryError {
	if wrong.Query == nil {
		return &templates.QueryError{Param: wrong.Param, Message: wrong.Message, Shown: q.Query.String()}
	}
	text := strings.TrimSpace(v.Get("q"))
	start := min(max(wrong.Query.Offset, 0), len(text))
	end := min(max(start+wrong.Query.Length, start), len(text))
	w := &templates.QueryError{
		Before: text[:start], Token: text[start:end], After: text[end:],
		Message: sentence(wrong.Query.Message), Shown: q.Query.String(),
	}
	if near := wrong.Query.Nearest; near != "" {
		better := url.Values{}
		for _, param := range hidden(q) {
			better.Set(param.Name, param.Value)
		}
		better.Set("q", w.Before+near+w.After)
		w.Correct = &templates.Link{Text: near, Href: p.urls.Prefix + "/tasks?" + better.Encode()}
	}
	return w
}

// goodPart returns the longest query that the text before offset is, word by word.
func goodPart(text string, offset int) lang.Query {
	text = strings.ToValidUTF8(text[:min(max(offset, 0), len(text))], "")
	for text != "" {
		text = strings.TrimRightFunc(text, unicode.IsSpace)
		if q, err := lang.Parse(text); err == nil {
			return q
		}
		text = text[:strings.LastIndexFunc(text, unicode.IsSpace)+1]
	}
	return lang.Query{}
}

// sentence makes a sentence of a message that begins in lower case and has no full stop.
func sentence(s string) string {
	first, n := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[n:]
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}
