package celery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// maxLevel is how deep arguments may nest. Python's own limits, of reading JSON and of pickling for a pool
	// process, begin at several hundreds.
	maxLevel = 64
	// maxDigits is how long an integer may be: Python from 3.11 on refuses longer ones (sys.set_int_max_str_digits).
	maxDigits = 4300
)

// kind of a node.
type kind uint8

const (
	isNull kind = iota
	isBool
	isInt
	isFloat
	isText
	isArray
	isObject
)

// node is one JSON value, checked to be one that Python reads without loss.
type node struct {
	kind  kind
	text  string // of a text, decoded; of a number and a boolean, as written
	keys  []string
	items []node
}

// parseNode parses JSON and refuses what a worker would refuse to read, or read as something else: duplicate keys,
// invalid text, numbers out of range, and Kombu's wrappers of values that it could not unwrap. Its error is a
// *MessageError.
func parseNode(raw []byte, path string) (node, error) {
	if !utf8.Valid(raw) {
		return node{}, &MessageError{Path: path, Message: "must be UTF-8"}
	}
	if err := wellFormed(raw, path); err != nil {
		return node{}, err
	}
	p := parser{text: raw, tokens: json.NewDecoder(bytes.NewReader(raw))}
	p.tokens.UseNumber()
	return p.value(&place{name: path}, 0)
}

// place is where a value stands: at the root, in an array or in an object. It is spelled out only for an error, since
// the paths of all values together can be as long as the square of the text.
type place struct {
	above *place // nil at the root
	name  string // of the root or the member
	index int    // of the element, -1 of a member
}

func (p *place) String() string {
	switch {
	case p.above == nil:
		return p.name
	case p.index < 0:
		return join(p.above.String(), p.name)
	default:
		return p.above.String() + "[" + strconv.Itoa(p.index) + "]"
	}
}

// wellFormed checks the syntax.
func wellFormed(raw []byte, path string) error {
	var whole json.RawMessage
	err := json.Unmarshal(raw, &whole)
	if err == nil {
		return nil
	}
	message := "must be JSON: " + err.Error()
	if syntax, ok := err.(*json.SyntaxError); ok { //nolint:errorlint // Unmarshal wraps none
		message = fmt.Sprintf("must be JSON: %v at character %d", syntax, syntax.Offset)
	}
	return &MessageError{Path: path, Message: message}
}

// parser reads JSON whose syntax was checked.
type parser struct {
	text   []byte
	tokens *json.Decoder
}

func (p *parser) value(at *place, level int) (node, error) {
	if level > maxLevel {
		return node{}, &MessageError{Path: at.String(), Message: fmt.Sprintf("must not nest deeper than %d levels", maxLevel)}
	}
	start := p.tokens.InputOffset()
	token, err := p.tokens.Token()
	if err != nil {
		return node{}, &MessageError{Path: at.String(), Message: "must be JSON"}
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '{' {
			return p.object(at, level)
		}
		return p.array(at, level)
	case string:
		if loneSurrogate(string(p.text[start:p.tokens.InputOffset()])) {
			return node{}, &MessageError{Path: at.String(), Message: "must be text: half of a surrogate pair is none"}
		}
		return node{kind: isText, text: v}, nil
	case json.Number:
		return number(v.String(), at)
	case bool:
		return node{kind: isBool, text: strconv.FormatBool(v)}, nil
	}
	return node{}, nil
}

func (p *parser) array(at *place, level int) (node, error) {
	n := node{kind: isArray}
	for p.tokens.More() {
		item, err := p.value(&place{above: at, index: len(n.items)}, level+1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
	}
	_, err := p.tokens.Token() // its end
	return n, err
}

func (p *parser) object(at *place, level int) (node, error) {
	n := node{kind: isObject}
	known := make(map[string]bool)
	for p.tokens.More() {
		key, err := p.value(at, level)
		if err != nil {
			return node{}, err
		}
		member := &place{above: at, name: key.text, index: -1}
		if known[key.text] {
			return node{}, &MessageError{Path: member.String(), Message: "must not be there twice"}
		}
		known[key.text] = true
		item, err := p.value(member, level+1)
		if err != nil {
			return node{}, err
		}
		n.keys, n.items = append(n.keys, key.text), append(n.items, item)
	}
	if _, err := p.tokens.Token(); err != nil { // its end
		return node{}, err
	}
	return n, unwrappable(n, at)
}

// number checks a number.
func number(written string, at *place) (node, error) {
	if !strings.ContainsAny(written, ".eE") {
		if len(strings.TrimPrefix(written, "-")) > maxDigits {
			message := fmt.Sprintf("must have at most %d digits", maxDigits)
			return node{}, &MessageError{Path: at.String(), Message: message}
		}
		return node{kind: isInt, text: written}, nil
	}
	if f, err := strconv.ParseFloat(written, 64); err != nil || math.IsInf(f, 0) {
		return node{}, &MessageError{Path: at.String(), Message: "must be a number that fits 64 bits"}
	}
	return node{kind: isFloat, text: written}, nil
}

// join is the path of a key.
func join(path, key string) string {
	for i := range len(key) {
		c := key[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return path + "[" + strconv.Quote(key) + "]"
		}
	}
	if key == "" {
		return path + `[""]`
	}
	return path + "." + key
}

// loneSurrogate reports whether the JSON of a string escapes half of a surrogate pair.
func loneSurrogate(quoted string) bool {
	s := scanner{text: quoted}
	for {
		n := strings.IndexByte(s.text[s.at:], '\\')
		if n < 0 {
			return false
		}
		s.at += n + 2
		if s.text[s.at-1] != 'u' {
			continue
		}
		r, ok := s.hex4()
		if ok && utf16.IsSurrogate(r) && s.pair(r) == utf8.RuneError {
			return true
		}
	}
}
