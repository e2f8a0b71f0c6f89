package flower

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// arguments are those of a request, in its query or a form alike: of one that is given several times, the last value.
// Control characters in them are spaces.
type arguments map[string]string

// maxMemory is how much of a form in parts is kept in memory; it is at most 2 MiB altogether.
const maxMemory = 2 << 20

// parseArguments reads the arguments of a request.
func parseArguments(r *http.Request) (arguments, error) {
	a := arguments{}
	if err := a.parse(r.URL.RawQuery); err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/x-www-form-urlencoded":
		body, err := readBody(r)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body)) // which may be JSON: curl says that it is a form
		return a, a.parse(string(body))
	case "multipart/form-data":
		if r.ParseMultipartForm(maxMemory) != nil { // as Flower, which logs it
			return a, nil
		}
		for name, values := range r.MultipartForm.Value {
			for _, v := range values {
				if err := a.set(name, v); err != nil {
					return nil, err
				}
			}
		}
	}
	return a, nil
}

// parse adds the arguments of a query. Escapes that are none stand for themselves.
func (a arguments) parse(encoded string) error {
	for pair := range strings.SplitSeq(encoded, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if pair == "" {
			continue
		}
		if err := a.set(unescape(name), unescape(value)); err != nil {
			return err
		}
	}
	return nil
}

func (a arguments) set(name, value string) error {
	if !utf8.ValidString(value) {
		return &failure{http.StatusBadRequest, "Invalid unicode in " + strings.ToValidUTF8(name, "\uFFFD")}
	}
	a[name] = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r <= 8 || 0xe <= r && r <= 0x1f {
			return ' '
		}
		return r
	}, value))
	return nil
}

// unescape decodes what is escaped as in a form.
func unescape(s string) string {
	if decoded, err := url.QueryUnescape(s); err == nil {
		return decoded
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '+':
			b.WriteByte(' ')
		case s[i] == '%' && i+2 < len(s):
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
			fallthrough
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// text returns an argument, or what it is by default.
func (a arguments) text(name, otherwise string) string {
	if v, ok := a[name]; ok {
		return v
	}
	return otherwise
}

// required returns an argument that must not be empty.
func (a arguments) required(name string) (string, error) {
	if a[name] == "" {
		return "", &failure{http.StatusBadRequest, "Missing argument " + name}
	}
	return a[name], nil
}

// mistyped says that a value is not of a type of Python.
func mistyped(value, kind string) error {
	return &failure{http.StatusBadRequest, fmt.Sprintf("Invalid argument '%s' of type '%s'", value, kind)}
}

// flag returns a boolean argument, false if there is none.
func (a arguments) flag(name string) (bool, error) {
	v, ok := a[name]
	if !ok {
		return false, nil
	}
	b, ok := ParseBool(v)
	if !ok {
		return false, mistyped(v, "bool")
	}
	return b, nil
}

// ParseBool reads a boolean as Flower does; false if it is none.
func ParseBool(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "y", "yes", "t", "true", "on", "1":
		return true, true
	case "n", "no", "f", "false", "off", "0":
		return false, true
	}
	return false, false
}

// integer returns an integer argument, of any size cut to that of an int.
func (a arguments) integer(name string, otherwise int) (int, error) {
	v, ok := a[name]
	if !ok {
		return otherwise, nil
	}
	n, ok := parseInt(v)
	if !ok {
		return 0, mistyped(v, "int")
	}
	return n, nil
}

// requiredInteger returns an integer argument that must be there.
func (a arguments) requiredInteger(name string) (int, error) {
	if _, err := a.required(name); err != nil {
		return 0, err
	}
	return a.integer(name, 0)
}

// number returns an argument in seconds or the like, nil if there is none.
func (a arguments) number(name string) (*float64, error) {
	v, ok := a[name]
	if !ok {
		return nil, nil //nolint:nilnil // there is none
	}
	f, ok := parseFloat(v)
	if !ok {
		return nil, mistyped(v, "float")
	}
	return &f, nil
}

// parseInt reads an integer as Python's int does, but for digits of other scripts.
func parseInt(s string) (int, bool) {
	digits, ok := withoutUnderscores(strings.TrimSpace(s))
	sign := strings.TrimLeft(digits, "+-")
	if !ok || len(digits)-len(sign) > 1 || sign == "" || strings.Trim(sign, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 0)
	if err != nil && n == 0 {
		return 0, false
	}
	return int(n), true
}

// parseFloat reads a number as Python's float does.
func parseFloat(s string) (float64, bool) {
	s, ok := withoutUnderscores(strings.TrimSpace(s))
	if !ok || strings.ContainsAny(s, "xXpP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// withoutUnderscores removes single underscores between digits; false if there are others.
func withoutUnderscores(s string) (string, bool) {
	digit := func(i int) bool { return i >= 0 && i < len(s) && '0' <= s[i] && s[i] <= '9' }
	for i := range len(s) {
		if s[i] == '_' && (!digit(i-1) || !digit(i+1)) {
			return "", false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}
