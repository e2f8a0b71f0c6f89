package celery

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// maxNesting bounds how deep headers and MessagePack may be nested.
const maxNesting = 64

var errDepth = errors.New("nested too deeply")

// StrictJSON converts JSON as Python writes it into valid JSON: NaN and the infinities become null, and lone
// surrogates and bytes that are not UTF-8 become U+FFFD. Numbers and white space stay as they are; needless escapes are
// dropped. It fails if b is not JSON, or is nested more than 10,000 deep.
func StrictJSON(b []byte) (json.RawMessage, error) {
	s := scanner{text: valid(b)}
	out := make([]byte, 0, len(b))
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case '{', '}', '[', ']', ',', ':', ' ', '\n', '\t', '\r':
			out = append(out, c)
			s.at++
		case '"':
			text, err := s.str()
			if err != nil {
				return nil, err
			}
			out = appendString(out, text)
		default:
			raw, err := s.raw()
			if err != nil {
				return nil, err
			}
			if strings.ContainsAny(raw, "NI") {
				raw = "null"
			}
			out = append(out, raw...)
		}
	}
	if !json.Valid(out) {
		return nil, errMalformed
	}
	return out, nil
}

// appendString appends a JSON string to out. Bytes of s that are not UTF-8 become U+FFFD.
func appendString(out []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	out = append(out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < ' ':
			out = append(out, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return append(out, '"')
}

// decodeValue decodes strict JSON: nil, bool, int64, float64, string, []any or map[string]any.
func decodeValue(text json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errMalformed
	}
	return convertNumbers(v, 0)
}

// convertNumbers replaces each json.Number in v: by an int64 if it is one, else by a float64, or by nil if it fits neither.
func convertNumbers(v any, depth int) (any, error) {
	if depth > maxNesting {
		return nil, errDepth
	}
	var err error
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		if f, err := v.Float64(); err == nil {
			return f, nil
		}
		return nil, nil
	case []any:
		for i := range v {
			if v[i], err = convertNumbers(v[i], depth+1); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range v {
			if v[key], err = convertNumbers(v[key], depth+1); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}
