package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
)

const (
	maxResult = 50_000 // bytes of the result of a tool
	maxKept   = 20     // elements of a list inside a result that is too long
)

// bounded returns body as JSON of at most maxResult bytes. If it is longer, texts are cut first, then lists, and the field
// note says so; goOn says how to get the rest if only the first n items are left.
func bounded(body map[string]any, goOn func(n int) string) string {
	text := encode(body)
	for _, length := range []int{4_000, 1_000, 300} {
		if len(text) <= maxResult {
			return text
		}
		cut(body, length)
		body["note"] = fmt.Sprintf("Texts are cut to %d bytes.", length)
		text = encode(body)
	}
	note, _ := body["note"].(string)
	items, isList := body["items"].([]any)
	for n := len(items); isList && len(text) > maxResult && n > 0; text = encode(body) {
		n -= max(1, n/10)
		body["items"] = items[:n]
		body["note"] = strings.TrimSpace(fmt.Sprintf("Only the first %d of %d items fit. %s %s", n, len(items), goOn(n), note))
		delete(body, "next")
	}
	if len(text) > maxResult {
		shorten(body)
		body["note"] = fmt.Sprintf("Lists are cut to their last %d elements. %s", maxKept, note)
		text = encode(body)
	}
	if len(text) > maxResult {
		return encode(map[string]any{"note": fmt.Sprintf("The result is larger than %d bytes.", maxResult)})
	}
	return text
}

// encode returns v as JSON, with < and > as they are.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it was JSON
	return strings.TrimSuffix(b.String(), "\n")
}

// cut shortens the texts in v to a number of bytes.
func cut(v any, length int) any {
	switch v := v.(type) {
	case string:
		return truncate.Text(v, length)
	case []any:
		for i := range v {
			v[i] = cut(v[i], length)
		}
	case map[string]any:
		for name := range v {
			if name != "id" && name != "next" && name != "prev" { // those are sent back
				v[name] = cut(v[name], length)
			}
		}
	}
	return v
}

// shorten leaves the last maxKept elements of each list in v.
func shorten(v any) any {
	switch v := v.(type) {
	case []any:
		v = v[max(0, len(v)-maxKept):]
		for i := range v {
			v[i] = shorten(v[i])
		}
		return v
	case map[string]any:
		for name := range v {
			v[name] = shorten(v[name])
		}
	}
	return v
}
