package payload

import lang "github.com/umbelhq/umbel/state/query"

// Reads reports whether the text of a query asks for payloads, so that who may not see them may not see what it finds.
func Reads(text string) bool {
	q, err := lang.Parse(text)
	if err != nil {
		return true
	}
	shown, err := Query(q)
	return err != nil || shown.String() != q.String()
}
