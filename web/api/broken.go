package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// notJSON reports a body that cannot be read, with where that begins: NaN, as Python writes it, is no JSON.
func notJSON(body []byte) *Problem {
	path := brokenAt(body)
	if path == "" {
		return problem(http.StatusBadRequest, "The body is not JSON.")
	}
	path = shorten(path)
	p := problem(http.StatusBadRequest, "The body is not JSON from "+path+" on.")
	p.Errors = []Detail{{Location: "body." + path, Message: "is not JSON"}}
	return p
}

// level is an array or object that is being read.
type level struct {
	array bool
	index int    // of the element that comes next
	key   string // of the member whose value comes next
	keyed bool   // the key was read, and the value was not
}

// maxLevels is how deep brokenAt looks.
const maxLevels = 100

// brokenAt is the path of the first value of a JSON text that cannot be read, empty if it is the whole text or too deep
// inside.
func brokenAt(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	var open []level
	for {
		token, err := d.Token()
		if err != nil {
			return pathTo(open)
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 {
			top := &open[n-1]
			switch {
			case top.array:
				top.index++
			case top.keyed:
				top.keyed = false
			default:
				top.key, top.keyed = fmt.Sprint(token), true
			}
		}
		if token == json.Delim('{') || token == json.Delim('[') {
			if len(open) == maxLevels {
				return ""
			}
			open = append(open, level{array: token == json.Delim('[')})
		}
	}
}

// pathTo spells the path to the value that comes next in the innermost level. Those around it have been counted
// already.
func pathTo(open []level) string {
	var b strings.Builder
	for i, l := range open {
		last := i == len(open)-1
		switch {
		case l.array && last:
			fmt.Fprintf(&b, "[%d]", l.index)
		case l.array:
			fmt.Fprintf(&b, "[%d]", l.index-1)
		case !last || l.keyed:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(l.key)
		}
	}
	return b.String()
}
