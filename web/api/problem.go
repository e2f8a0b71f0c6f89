package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	lang "github.com/umbelhq/umbel/state/query"
	"github.com/umbelhq/umbel/web/query"
)

// Problem is what clients get instead of an answer (RFC 9457).
type Problem struct { //nolint:errname // its name in the OpenAPI document
	Type      string   `json:"type" example:"about:blank"`
	Title     string   `json:"title" doc:"The status in words." example:"Bad Request"`
	Status    int      `json:"status" example:"400"`
	Detail    string   `json:"detail" doc:"What is wrong, in one sentence."`
	Parameter string   `json:"parameter,omitempty" doc:"The query parameter that is wrong." example:"limit"`
	Offset    *int     `json:"offset,omitempty" doc:"Where q is wrong, in bytes of UTF-8." example:"14"`
	Length    *int     `json:"length,omitempty" doc:"How many bytes of q are wrong there."`
	Nearest   string   `json:"nearest,omitempty" doc:"The known name that was probably meant." example:"name"`
	Errors    []Detail `json:"errors,omitempty" nullable:"false"`
}

// Detail is one thing that is wrong with a request.
type Detail struct {
	Location string `json:"location" example:"query.limit"`
	Message  string `json:"message" example:"must be a whole number from 1 to 500"`
}

func problem(status int, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// badParameter reports a query parameter that is wrong.
func badParameter(e *query.Error) *Problem {
	e = &query.Error{Param: shorten(e.Param), Message: e.Message, Query: e.Query}
	p := problem(http.StatusBadRequest, "Parameter "+e.Error()+".")
	p.Parameter = e.Param
	p.Errors = []Detail{{Location: "query." + e.Param, Message: e.Message}}
	if e.Query != nil {
		p.Offset, p.Length, p.Nearest = &e.Query.Offset, &e.Query.Length, e.Query.Nearest
	}
	return p
}

func unknownTask(id, nearest string) *Problem {
	p := problem(http.StatusNotFound,
		fmt.Sprintf("Task %q is not kept: no event of it was seen, or it was removed, as old tasks are.", shorten(id)))
	p.Nearest = nearest
	return p
}

func unknownWorker(name string, known []string) *Problem {
	p := problem(http.StatusNotFound, fmt.Sprintf("No worker is named %q.", shorten(name)))
	if p.Nearest = nearest(name, known); p.Nearest != "" {
		p.Detail = fmt.Sprintf("No worker is named %q; the nearest is %q.", shorten(name), p.Nearest)
	}
	return p
}

// Error returns the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of problems.
func (p *Problem) ContentType(string) string { return problemType }

// Refuse answers with a problem, for what stands before the API.
func Refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Cache-Control", "no-store")
	problem(status, detail).write(w)
}

const problemType = "application/problem+json"

// write answers with the problem, for what no operation handles.
func (p *Problem) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // fails only if the client has gone
}

// sentence makes one of a message that may begin in lower case and lack a full stop. A path, such as args[2].price, stays
// as it is.
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

// shorten bounds what a client sent before it is sent back.
func shorten(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// nearest returns the known name that was probably meant, empty if none is near.
func nearest(name string, known []string) string {
	if name == "" || len(name) > 255 {
		return ""
	}
	name = strings.ToLower(name)
	best, least := "", len(name)/2+1
	for _, k := range known {
		lower := strings.ToLower(k)
		if strings.Contains(lower, name) {
			return k
		}
		if len(lower) > 2*len(name) {
			continue
		}
		if d := lang.Distance(name, lower); d < least {
			best, least = k, d
		}
	}
	return best
}
