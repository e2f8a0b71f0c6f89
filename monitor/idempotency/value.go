package idempotency

import "strings"

// Bounds of a value. Whatever has more is refused, so that a fingerprint takes less than 10 ms.
const (
	MaxBytes  = 1 << 20 // of its JSON
	MaxValues = 20_000  // it and all in it, keys not counted
	MaxDepth  = 500     // containers within containers
	MaxFar    = 100     // floats that have more than 19 digits, are beyond 1e300, or nearer to 0 than 1e-290
)

// kind of a value.
type kind uint8

const (
	isNull kind = iota
	isFalse
	isTrue
	isInt
	isFloat
	isText
	isArray
	isObject
)

// Value is a value of JSON as Python has it: null, a boolean, an integer of any length, a float, text, an array or an
// object with keys of text. The zero value is null. It does not change, so it is safe for concurrent use.
type Value struct {
	kind   kind
	number float64
	// text of an integer, in decimal, as Python writes it. Or a text in UTF-8, in which a surrogate that is not part of
	// a pair is encoded like any other code point: so the order of bytes is that of code points, by which Python sorts.
	text string
	*parts
}

// parts are what is in an array or an object. They never change, and are nil where there are none.
type parts struct {
	keys  []string // of an object, each once, in the order in which they are written
	items []Value
}

// Error says why there is no canonical form of a value.
type Error struct {
	Path    string // where, such as order.lines[3]; empty for the value as a whole
	Message string // such as "must be an object"
}

// Error implements error.
func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// within puts the place of a container's part before the path of an error. Of long paths the end is kept.
func (e *Error) within(part string) *Error {
	const most = 300 // bytes
	if len(e.Path) > most {
		if !strings.HasPrefix(e.Path, "…") {
			e.Path = "…" + e.Path
		}
		return e
	}
	if e.Path != "" && e.Path[0] != '[' && part != "" {
		part += "."
	}
	e.Path = part + e.Path
	return e
}

// tooMany, tooLong and tooDeep are refusals of what exceeds a bound.
func tooMany() *Error { return &Error{Message: "has more than 20,000 values"} }
func tooLong() *Error { return &Error{Message: "is longer than 1 MiB"} }
func tooDeep() *Error { return &Error{Message: "nests deeper than 500 levels"} }

// count returns how many values v is, with all in it.
func count(v *Value) int {
	n := 1
	items := elements(v)
	for i := range items {
		n += count(&items[i])
	}
	return n
}

// elements returns the items of a container.
func elements(v *Value) []Value {
	if v.parts == nil {
		return nil
	}
	return v.items
}
