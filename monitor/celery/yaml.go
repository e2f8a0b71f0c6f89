package celery

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	maxYAML        = 1 << 20 // bytes of a message in YAML
	maxYAMLAsJSON  = 8 << 20 // bytes of JSON that it becomes: aliases repeat what they stand for
	yamlBinary     = "!!binary"
	yamlStr        = "!!str"
	kombuType      = "__type__"
	kombuValue     = "__value__"
	kombuText      = "bytes" // that are UTF-8
	kombuBytes     = "base64"
	kombuDatetime  = "datetime"
	kombuDate      = "date"
	sexagesimal    = 60
	maxSexagesimal = 10 // parts of a number with base 60
)

var errYAML = errors.New("malformed YAML")

// fromYAML returns a document of YAML 1.1 as JSON in the manner of Python. It is nested at most maxNesting deep. What is
// not JSON becomes text, or, if f is lossless, what Kombu writes for it in JSON.
func fromYAML(b []byte, f fidelity) ([]byte, error) {
	if len(b) > maxYAML {
		return nil, fmt.Errorf("longer than %d bytes", maxYAML)
	}
	root, err := parseYAML(b)
	if err != nil && f == readable { // PyYAML writes halves of surrogate pairs, which are no characters
		root, err = parseYAML(loneSurrogates().ReplaceAll(b, []byte(`\uFFFD`)))
	}
	if err != nil {
		return nil, err
	}
	r := yamlReader{fidelity: f, out: make([]byte, 0, len(b))}
	if err := r.value(root, 0); err != nil {
		return nil, err
	}
	return r.out, nil
}

func loneSurrogates() *regexp.Regexp { return regexp.MustCompile(`\\u[dD][89a-fA-F][0-9a-fA-F]{2}`) }

// parseYAML returns the value of the only document in b.
func parseYAML(b []byte) (root *yaml.Node, err error) {
	defer func() {
		if recover() != nil { // the library has panicked on malformed input before
			root, err = nil, errYAML
		}
	}()
	d := yaml.NewDecoder(bytes.NewReader(b))
	var document, more yaml.Node
	if err := d.Decode(&document); err != nil || len(document.Content) != 1 {
		return nil, errYAML
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errYAML
	}
	return document.Content[0], nil
}

// yamlReader writes the JSON of what it reads.
type yamlReader struct {
	fidelity fidelity
	out      []byte
}

func (r *yamlReader) value(n *yaml.Node, depth int) error {
	switch {
	case depth > maxNesting:
		return errDepth
	case len(r.out) > maxYAMLAsJSON:
		return errors.New("its aliases make it too long")
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.ScalarNode:
		return r.scalar(n)
	case yaml.SequenceNode:
		if err := r.untagged(n, "!!seq"); err != nil {
			return err
		}
		return r.sequence(n, depth)
	case yaml.MappingNode:
		if err := r.untagged(n, "!!map"); err != nil {
			return err
		}
		return r.mapping(n, depth)
	case yaml.DocumentNode:
	}
	return errYAML
}

// untagged refuses a tag that Kombu would refuse, or that has no counterpart in JSON.
func (r *yamlReader) untagged(n *yaml.Node, usual string) error {
	if r.fidelity == lossless && n.Style&yaml.TaggedStyle != 0 && n.ShortTag() != usual {
		return fmt.Errorf("%.100s of YAML has no counterpart in JSON", n.Tag)
	}
	return nil
}

func (r *yamlReader) sequence(n *yaml.Node, depth int) error {
	r.out = append(r.out, '[')
	for i, item := range n.Content {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		if err := r.value(item, depth+1); err != nil {
			return err
		}
	}
	r.out = append(r.out, ']')
	return nil
}

// mapping writes an object. Keys that are not text become the text of their JSON; maps and lists are no keys in Python.
func (r *yamlReader) mapping(n *yaml.Node, depth int) error {
	r.out = append(r.out, '{')
	for i := 0; i+1 < len(n.Content); i += 2 {
		if i > 0 {
			r.out = append(r.out, ',')
		}
		key := n.Content[i]
		for ; key.Kind == yaml.AliasNode; key = key.Alias {
			if depth++; depth > maxNesting {
				return errDepth
			}
		}
		if key.Kind != yaml.ScalarNode {
			return errYAML
		}
		from := len(r.out)
		if err := r.scalar(key); err != nil {
			return err
		}
		if text := string(r.out[from:]); !strings.HasPrefix(text, `"`) {
			if r.fidelity == lossless {
				return errKey
			}
			r.out = appendString(r.out[:from], text)
		}
		r.out = append(r.out, ':')
		if err := r.value(n.Content[i+1], depth+1); err != nil {
			return err
		}
	}
	r.out = append(r.out, '}')
	return nil
}

var errKey = errors.New("a key is not text, which JSON does not have")

// scalar writes a scalar as PyYAML reads it, which is YAML 1.1: yes is true, 012 is ten, and 1e3 is text.
func (r *yamlReader) scalar(n *yaml.Node) error {
	tag := yamlStr
	switch {
	case n.Style&yaml.TaggedStyle != 0:
		tag = n.ShortTag()
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0:
		tag = resolve(n.Value)
	}
	if text, ok := plainYAML(tag, n.Value); ok {
		r.out = append(r.out, text...)
		return nil
	}
	switch tag {
	case yamlStr:
		r.out = appendString(r.out, n.Value)
		return nil
	case yamlBinary:
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return errYAML
		}
		r.out = appendBytes(r.out, r.fidelity, b)
		return nil
	case "!!timestamp":
		return r.timestamp(n.Value)
	}
	if r.fidelity == lossless {
		return fmt.Errorf("%.100s of YAML has no counterpart in JSON", n.Tag)
	}
	r.out = appendString(r.out, n.Value)
	return nil
}

// wrap writes a value that JSON does not have, as Kombu does if it must be lossless.
func (r *yamlReader) wrap(kind, text string) { r.out = appendWrapped(r.out, r.fidelity, kind, text) }

// appendWrapped appends a value that JSON does not have: as Kombu writes it in JSON, or as text.
func appendWrapped(dst []byte, f fidelity, kind, text string) []byte {
	if f == readable {
		return appendString(dst, text)
	}
	dst = append(dst, `{"`+kombuType+`":"`+kind+`","`+kombuValue+`":`...)
	return append(appendString(dst, text), '}')
}

// appendBytes appends bytes, which Kombu writes as text where they are UTF-8.
func appendBytes(dst []byte, f fidelity, b []byte) []byte {
	if f == lossless && utf8.Valid(b) {
		return appendWrapped(dst, f, kombuText, string(b))
	}
	return appendWrapped(dst, f, kombuBytes, base64.StdEncoding.EncodeToString(b))
}

// timestamp writes a date or a time, which is UTC if it has no zone that says otherwise.
func (r *yamlReader) timestamp(text string) error {
	if isoDate(text) && len(text) == len("2006-01-02") {
		r.wrap(kombuDate, text)
		return nil
	}
	iso := strings.Replace(text, " ", "T", 1)
	if r.fidelity == lossless && !isoDate(iso) {
		return errors.New("a time of YAML is in a form that is not read")
	}
	r.wrap(kombuDatetime, iso)
	return nil
}

// resolve returns the tag of a plain scalar (yaml/resolver.py).
func resolve(text string) string {
	switch text {
	case "yes", "Yes", "YES", "no", "No", "NO", "true", "True", "TRUE", "false", "False", "FALSE", "on", "On", "ON", "off", "Off", "OFF":
		return "!!bool"
	case "", "~", "null", "Null", "NULL":
		return "!!null"
	}
	if !strings.ContainsRune("+-.0123456789", rune(text[0])) {
		return yamlStr
	}
	for _, form := range yamlForms() {
		if form.MatchString(text) {
			return form.tag
		}
	}
	return yamlStr
}

type yamlForm struct {
	*regexp.Regexp
	tag string
}

//nolint:gochecknoglobals // compiled once
var forms = []yamlForm{
	{regexp.MustCompile(`^(?:[-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$`), "!!int"},
	{regexp.MustCompile(`^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|` +
		`[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$`), "!!float"},
	{regexp.MustCompile(`^(?:\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::\d\d)?))?)$`), "!!timestamp"},
}

func yamlForms() []yamlForm { return forms }

// plainYAML returns the JSON of a null, a boolean or a number, false if it is none.
func plainYAML(tag, text string) (string, bool) {
	switch tag {
	case "!!null":
		return "null", true
	case "!!bool":
		switch strings.ToLower(text) {
		case "yes", "true", "on":
			return "true", true
		case "no", "false", "off":
			return "false", true
		}
	case "!!int":
		return yamlInt(text)
	case "!!float":
		return yamlFloat(text)
	}
	return "", false
}

func yamlInt(text string) (string, bool) {
	digits := strings.ReplaceAll(text, "_", "")
	if len(digits) > maxDigits {
		return "", false
	}
	sign := ""
	switch {
	case strings.HasPrefix(digits, "-"):
		sign, digits = "-", digits[1:]
	case strings.HasPrefix(digits, "+"):
		digits = digits[1:]
	}
	n, ok := new(big.Int), true
	switch {
	case strings.Contains(digits, ":"):
		parts := strings.Split(digits, ":")
		if len(parts) > maxSexagesimal {
			return "", false
		}
		for _, part := range parts {
			x, isInt := new(big.Int).SetString(part, 10)
			ok = ok && isInt
			if isInt {
				n.Add(n.Mul(n, big.NewInt(sexagesimal)), x)
			}
		}
	default:
		if strings.HasPrefix(digits, "0") && len(digits) > 1 && digits[1] >= '0' && digits[1] <= '7' {
			digits = "0o" + digits[1:]
		}
		_, ok = n.SetString(digits, 0)
	}
	if !ok {
		return "", false
	}
	if n.Sign() == 0 {
		sign = ""
	}
	return sign + n.String(), true
}

func yamlFloat(text string) (string, bool) {
	text = strings.ToLower(strings.ReplaceAll(text, "_", ""))
	switch strings.TrimLeft(text, "+-") {
	case ".inf":
		if strings.HasPrefix(text, "-") {
			return "-Infinity", true
		}
		return "Infinity", true
	case ".nan":
		return "NaN", true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return "", false
	}
	return string(appendFloat(nil, f)), true
}
