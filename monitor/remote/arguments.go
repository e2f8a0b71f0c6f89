package remote

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/state/query"
)

// Bounds of arguments.
const (
	maxText    = 1_000              // bytes of a name
	maxTexts   = 10_000             // of a list
	maxWhole   = 1_000              // processes: a slip must not bring a machine down
	maxSeconds = 365 * 24 * 60 * 60 // of a time limit
	maxRate    = 1_000_000          // tasks in a second, minute or hour
	sane       = 1 << 53            // integers that JSON keeps everywhere
	rateShape  = `^\d{1,7}(\.\d{1,6})?(/[smh])?$`
)

// Check returns args as the worker expects them, in types that JSON keeps, or an *ArgumentError: one is missing,
// mistyped, or not known.
func (m Method) Check(args map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(args))
	for _, name := range slices.Sorted(maps.Keys(args)) {
		p, known := m.param(name)
		if !known {
			return nil, m.unknown(name)
		}
		v, wrong := p.check(args[name])
		if wrong != "" {
			s, _ := args[name].(string)
			return nil, &ArgumentError{Method: m.Name, Argument: name, Message: wrong, Nearest: meant(s, p.Choices)}
		}
		out[name] = v
	}
	for _, p := range m.Params {
		if _, given := out[p.Name]; p.Required && !given {
			return nil, &ArgumentError{Method: m.Name, Argument: p.Name, Message: "is missing"}
		}
	}
	return out, m.join(out)
}

// unknown is the error for an argument that m does not have.
func (m Method) unknown(name string) error {
	e := &ArgumentError{Method: m.Name, Argument: truncate.Chars(name, 60), Message: "is not known"}
	if len(m.Params) == 0 {
		e.Message = "is not known, it has none"
		return e
	}
	var names []string
	for _, p := range m.Params {
		names = append(names, p.Name)
	}
	e.Nearest = query.Nearest(name, names)
	return e
}

// meant returns the choice that was probably meant.
func meant(s string, choices []string) string {
	for _, c := range choices {
		if strings.EqualFold(c, s) || strings.EqualFold(c, "SIG"+s) {
			return c
		}
	}
	return query.Nearest(s, choices)
}

// join checks what arguments must be together, and fills in what the worker cannot do without.
func (m Method) join(args map[string]any) error {
	switch m.Name {
	case "terminate":
		if args["signal"] == nil {
			args["signal"] = "SIGTERM"
		}
	case "autoscale":
		if args["min"].(int64) > args["max"].(int64) {
			return &ArgumentError{Method: m.Name, Argument: "min", Message: "must not be more than max"}
		}
	case "time_limit":
		soft, softly := args["soft"]
		hard, hardly := args["hard"]
		if !softly && !hardly {
			return &ArgumentError{
				Method: m.Name, Argument: "soft", Message: "is missing, and hard too: give one of them, null for no limit",
			}
		}
		s, limited := soft.(float64)
		if h, ok := hard.(float64); ok && limited && s > h {
			return &ArgumentError{Method: m.Name, Argument: "soft", Message: "must not be more than hard"}
		}
	}
	return nil
}

// check returns v in the type of p, or what v must be.
func (p Param) check(v any) (out any, wrong string) {
	switch p.Type {
	case Text:
		return p.text(v)
	case Signal:
		if s, ok := v.(string); ok && slices.Contains(p.Choices, s) {
			return s, ""
		}
		return nil, "must be one of " + strings.Join(p.Choices, ", ")
	case TextList:
		return texts(v)
	case Integer:
		n, ok := number(v)
		if !ok || n != math.Trunc(n) || n < float64(p.Min) || n > maxWhole {
			return nil, fmt.Sprintf("must be a whole number from %d to %d", p.Min, maxWhole)
		}
		return int64(n), ""
	case Seconds:
		n, ok := number(v)
		switch {
		case v == nil:
			return nil, ""
		case !ok || n <= 0 || n > maxSeconds:
			return nil, "must be a number of seconds greater than 0, or null for no limit"
		}
		return n, ""
	case Rate:
		return rate(v)
	case Flag:
		if b, ok := v.(bool); ok {
			return b, ""
		}
		return nil, "must be true or false"
	case AnyJSON:
		return stamps(v)
	}
	return nil, "cannot be checked"
}

// text checks a string.
func (p Param) text(v any) (any, string) {
	s, ok := v.(string)
	switch {
	case !ok || strings.TrimSpace(s) == "":
		return nil, "must be text that is not empty"
	case len(s) > maxText || !utf8.ValidString(s):
		return nil, fmt.Sprintf("must be UTF-8 of at most %d bytes", maxText)
	case p.Choices != nil && !slices.Contains(p.Choices, s):
		return nil, "must be one of " + strings.Join(p.Choices, ", ")
	}
	return s, ""
}

// texts checks a list of strings. One string is a list of one.
func texts(v any) (any, string) {
	var list []any
	switch v := v.(type) {
	case string:
		list = []any{v}
	case []string:
		for _, s := range v {
			list = append(list, s)
		}
	case []any:
		list = v
	}
	if len(list) == 0 || len(list) > maxTexts {
		return nil, fmt.Sprintf("must be a list of 1 to %d texts", maxTexts)
	}
	out := make([]any, len(list))
	for i, item := range list {
		s, wrong := Param{}.text(item)
		if wrong != "" {
			return nil, fmt.Sprintf("at [%d] %s", i, wrong)
		}
		out[i] = s
	}
	return out, ""
}

// number reads what is a number in JSON or in Go.
func number(v any) (float64, bool) {
	var n float64
	switch v := v.(type) {
	case int:
		n = float64(v)
	case int64:
		n = float64(v)
	case float64:
		n = v
	case json.Number:
		var err error
		if n, err = v.Float64(); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return n, !math.IsNaN(n) && math.Abs(n) < sane
}

// rate checks a rate limit. Celery takes the text "0" for a limit, and then limits nothing: it becomes the number.
func rate(v any) (any, string) {
	const wrong = "must be a rate such as 10/m, 5/s or 2/h, or 0 for no limit"
	if s, ok := v.(string); ok {
		if !regexp.MustCompile(rateShape).MatchString(s) {
			return nil, wrong
		}
		count, _, _ := strings.Cut(s, "/")
		if n, err := strconv.ParseFloat(count, 64); err != nil || n == 0 {
			return int64(0), ""
		}
		return s, ""
	}
	n, ok := number(v)
	switch {
	case !ok || n < 0 || n > maxRate:
		return nil, wrong
	case n == math.Trunc(n):
		return int64(n), ""
	}
	return n, ""
}

// stamps checks an object of values, or lists of values, by header.
func stamps(v any) (any, string) {
	const wrong = "must be an object of a text or number, or a list of them, by header"
	headers, ok := v.(map[string]any)
	if !ok || len(headers) == 0 || len(headers) > maxTexts {
		return nil, wrong
	}
	for header, stamp := range headers {
		list, many := stamp.([]any)
		if !many {
			list = []any{stamp}
		}
		if header == "" || len(list) == 0 {
			return nil, wrong
		}
		for _, item := range list {
			if _, isText := item.(string); isText {
				continue
			}
			if _, isNumber := number(item); !isNumber {
				return nil, wrong
			}
		}
	}
	return headers, ""
}

// ParseForm reads arguments from the values of a form, which are texts: an empty one is left out, lists are separated by
// commas or white space, or are several values. What is not of the type of its parameter stays text, for Check to
// refuse. Values of other names are left out.
func (m Method) ParseForm(values map[string][]string) map[string]any {
	args := make(map[string]any)
	for _, p := range m.Params {
		text := strings.TrimSpace(strings.Join(values[p.Name], "\n"))
		if text != "" {
			args[p.Name] = p.read(text)
		}
	}
	return args
}

// read makes a value of text.
func (p Param) read(text string) any {
	var v any
	switch p.Type {
	case TextList:
		return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	case Flag:
		switch text {
		case "on", "true", "1":
			return true
		case "false", "0":
			return false
		}
	case Integer, Seconds, AnyJSON:
		if json.Unmarshal([]byte(text), &v) == nil {
			return v
		}
	case Text, Rate, Signal:
	}
	return text
}
