package results

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/umbelhq/umbel/monitor/celery"
)

// reprs spells what an exception was made with as Python's repr does.
func reprs(message json.RawMessage) string {
	var list []json.RawMessage
	if json.Unmarshal(message, &list) != nil {
		list = []json.RawMessage{message}
	}
	parts := make([]string, len(list))
	for i, m := range list {
		var text string
		if strings.HasPrefix(string(m), `"`) && json.Unmarshal(m, &text) == nil {
			parts[i] = textRepr(text)
		} else {
			parts[i] = celery.Repr(m)
		}
	}
	return strings.Join(parts, ", ")
}

// textRepr is Python's repr of a str: in single quotes, unless only such are in it.
func textRepr(s string) string {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch i := strings.IndexRune("\n\r\t", r); {
		case i >= 0:
			b.WriteByte('\\')
			b.WriteByte("nrt"[i])
		case r == quote, r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}
