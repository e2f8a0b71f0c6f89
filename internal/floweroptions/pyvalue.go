package floweroptions

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep brackets are nested in a configuration file.
const maxDepth = 20

// result is a value, or why it is not known.
type result struct {
	value   any
	refused string
}

func refused(format string, args ...any) result {
	return result{refused: fmt.Sprintf(format, args...)}
}

// value reads an expression: a literal, a list, tuple, set or dict of them, a name assigned above, or a call that reads the
// environment or converts.
func (f *pyFile) value(depth int) result {
	f.space(depth)
	if f.at == len(f.text) {
		return refused("has no value")
	}
	if depth > maxDepth {
		return refused("is nested too deep")
	}
	switch c := f.text[f.at]; {
	case c == '"' || c == '\'':
		return f.strings(depth)
	case c == '[':
		return f.sequence(']', depth+1)
	case c == '(':
		return f.sequence(')', depth+1)
	case c == '{':
		return f.sequence('}', depth+1)
	case c >= '0' && c <= '9' || c == '.':
		return f.number()
	case c == '-' || c == '+':
		f.at++
		v := f.value(depth)
		if c == '-' {
			switch n := v.value.(type) {
			case int64:
				v.value = -n
			case float64:
				v.value = -n
			default:
				return refused("must be a literal: %s", onlyLiterals)
			}
		}
		return v
	}
	return f.named(depth)
}

// named reads what begins with a name.
func (f *pyFile) named(depth int) result {
	start := f.at
	name := f.word()
	switch strings.ToLower(name) {
	case "r", "u", "b", "f", "rb", "br", "fr", "rf":
		if f.at < len(f.text) && (f.text[f.at] == '"' || f.text[f.at] == '\'') {
			f.at = start
			return f.strings(depth)
		}
	}
	switch name {
	case "True", "False":
		return result{value: name == "True"}
	case "None":
		return result{}
	case "":
		return refused("must be a literal: %s", onlyLiterals)
	}
	for f.at < len(f.text) && f.text[f.at] == '.' {
		f.at++
		f.word()
	}
	name = f.text[start:f.at]
	f.space(depth)
	open := byte(0)
	if f.at < len(f.text) {
		open = f.text[f.at]
	}
	switch {
	case open == '(' && slices.Contains([]string{"os.environ.get", "environ.get", "os.getenv", "getenv"}, name):
		return f.environ(f.sequence(')', depth+1), true)
	case open == '[' && (name == "os.environ" || name == "environ"):
		return f.environ(f.sequence(']', depth+1), false)
	case open == '(' && slices.Contains([]string{"int", "float", "str", "bool", "list", "tuple"}, name):
		return convert(name, f.sequence(')', depth+1))
	case open == '(' || open == '[':
		return refused("calls %s, which is not executed: %s", name, onlyLiterals)
	}
	for i := range f.list {
		if a := &f.list[i]; a.name == name {
			a.used = true
			return result{a.value, a.refused}
		}
	}
	return refused("refers to %s, which is not known here: %s", name, onlyLiterals)
}

// environ evaluates os.environ.get with its arguments. A call with one argument is read as that argument.
func (f *pyFile) environ(args result, optional bool) result {
	if args.refused != "" {
		return args
	}
	list, ok := args.value.([]any)
	if !ok {
		list = []any{args.value}
	}
	if len(list) == 0 || len(list) > 2 {
		return refused("must name one variable of the environment")
	}
	name, ok := list[0].(string)
	if !ok {
		return refused("must name a variable of the environment")
	}
	if value, ok := f.env[name]; ok {
		return result{value: value}
	}
	switch {
	case len(list) == 2:
		return result{value: list[1]}
	case !optional:
		return refused("needs the variable %s of the environment", name)
	}
	return result{}
}

// convert evaluates a call of a type of Python.
func convert(name string, arg result) result {
	if arg.refused != "" {
		return arg
	}
	text, isText := arg.value.(string)
	switch name {
	case "int":
		if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); isText && err == nil {
			return result{value: n}
		}
		if f, ok := arg.value.(float64); ok && math.Abs(f) < 1<<53 {
			return result{value: int64(f)}
		}
		if n, ok := arg.value.(int64); ok {
			return result{value: n}
		}
	case "float":
		if f, err := strconv.ParseFloat(strings.TrimSpace(text), 64); isText && err == nil {
			return result{value: f}
		}
		if f, err := number(arg.value); err == nil {
			return result{value: f}
		}
	case "str":
		if isText {
			return arg
		}
		if n, ok := arg.value.(int64); ok {
			return result{value: strconv.FormatInt(n, 10)}
		}
	case "list", "tuple":
		if _, ok := arg.value.([]any); ok {
			return arg
		}
	}
	return refused("calls %s in a way that is not read: %s", name, onlyLiterals)
}

// sequence reads what is in brackets. What is in parentheses without a comma is the value itself.
func (f *pyFile) sequence(end byte, depth int) result {
	f.at++
	list, dict, commas, isDict := []any{}, map[string]any{}, 0, false
	for {
		f.space(depth)
		if f.at == len(f.text) {
			return refused("has a bracket that is not closed")
		}
		if f.text[f.at] == end {
			f.at++
			break
		}
		v := f.value(depth)
		if v.refused != "" {
			return v
		}
		f.space(depth)
		if end == '}' && f.at < len(f.text) && f.text[f.at] == ':' {
			f.at++
			isDict = true
			member := f.value(depth)
			if member.refused != "" {
				return member
			}
			dict[fmt.Sprint(v.value)] = member.value
			f.space(depth)
		} else {
			list = append(list, v.value)
		}
		if f.at < len(f.text) && f.text[f.at] == ',' {
			f.at++
			commas++
		} else if f.at < len(f.text) && f.text[f.at] != end {
			return refused("must be made of literals, without operators or calls: %s", onlyLiterals)
		}
	}
	switch {
	case isDict || end == '}' && len(list) == 0:
		return result{value: dict}
	case end == ')' && commas == 0 && len(list) == 1:
		return result{value: list[0]}
	}
	return result{value: list}
}

// number reads an integer or a float.
func (f *pyFile) number() result {
	start := f.at
	for f.at < len(f.text) {
		c := f.text[f.at]
		exponent := (c == '+' || c == '-') && strings.ContainsRune("eE", rune(f.text[f.at-1])) && !strings.HasPrefix(f.text[start:], "0x")
		if !exponent && c != '.' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			break
		}
		f.at++
	}
	text := f.text[start:f.at]
	octal := len(text) > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9' && !strings.ContainsAny(text, ".eE")
	if n, err := strconv.ParseInt(text, 0, 64); err == nil && !octal {
		return result{value: n}
	}
	if x, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64); err == nil && !octal && !strings.ContainsAny(text, "xX") {
		return result{value: x}
	}
	return refused("has the number %.20s, which cannot be read", text)
}

// strings reads a string, or several that stand side by side.
func (f *pyFile) strings(depth int) result {
	var all strings.Builder
	for {
		start := f.at
		prefix := strings.ToLower(f.word())
		if f.at == len(f.text) || f.text[f.at] != '"' && f.text[f.at] != '\'' || len(prefix) > 2 {
			f.at = start
			return result{value: all.String()}
		}
		text, ok := f.text0()
		if !ok {
			return refused("has a string that does not end")
		}
		if strings.Contains(prefix, "f") && strings.ContainsAny(text, "{}") {
			return refused("has an f-string: %s", onlyLiterals)
		}
		if !strings.Contains(prefix, "r") {
			if text, ok = unescape(text); !ok {
				return refused(`has an escape that is not read, like \N`)
			}
		}
		all.WriteString(text)
		f.space(depth)
	}
}

// text0 reads a string in quotes as it stands.
func (f *pyFile) text0() (string, bool) {
	quote := f.text[f.at : f.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(f.text[f.at:], triple) {
		quote = triple
	}
	f.at += len(quote)
	start := f.at
	for f.at < len(f.text) {
		switch {
		case strings.HasPrefix(f.text[f.at:], quote):
			f.at += len(quote)
			return f.text[start : f.at-len(quote)], true
		case f.text[f.at] == '\\' && f.at+1 < len(f.text):
			if f.text[f.at+1] == '\n' {
				f.line++
			}
			f.at += 2
		case f.text[f.at] == '\n' && len(quote) == 1:
			return "", false
		default:
			if f.text[f.at] == '\n' {
				f.line++
			}
			f.at++
		}
	}
	return "", false
}

// unescape evaluates the escapes of a string.
func unescape(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		const plain, meant = `\'"abfnrtv`, "\\'\"\a\b\f\n\r\t\v"
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
		switch at := strings.IndexByte(plain, s[i]); {
		case at >= 0:
			b.WriteByte(meant[at])
		case s[i] == '\n':
		case digits > 0:
			if i+digits >= len(s) {
				return "", false
			}
			n, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
			if err != nil || n > utf8.MaxRune {
				return "", false
			}
			b.WriteRune(rune(n))
			i += digits
		case s[i] == 'N' || s[i] >= '0' && s[i] <= '7':
			return "", false
		default:
			b.WriteByte('\\')
			b.WriteByte(s[i])
		}
	}
	return b.String(), true
}
