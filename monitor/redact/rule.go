package redact

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// Bounds of rules.
const (
	MaxRules    = 500
	maxRule     = 1_000 // bytes
	maxPosition = 1_000
)

// rule hides something of tasks. One of keys, pattern, cards, whole and position is set.
type rule struct {
	text string // as it was written
	task string // glob that the task's name matches, empty for all tasks

	keys     []string       // globs of the spellings of a key
	pattern  *regexp.Regexp // of text
	cards    bool           // numbers of payment cards
	whole    fields
	position int // of an argument, from 1; 0 is none

	random bool // of the values of keys, only those that look random
}

// fields are texts of tasks.
type fields uint8

const (
	fieldArgs fields = 1 << iota
	fieldKwargs
	fieldResult
	fieldError // exception and traceback
	allFields  = fieldArgs | fieldKwargs | fieldResult | fieldError
)

// parseRule reads a rule:
//
//	[task GLOB] key GLOB | [task GLOB] text REGEXP | [task GLOB] cards | task GLOB arg N | task GLOB args|kwargs|result|error|all
func parseRule(text string) (rule, error) {
	r := rule{text: strings.TrimSpace(text)}
	if len(r.text) > maxRule {
		return r, fmt.Errorf("a rule has at most %d bytes", maxRule)
	}
	verb, rest := word(r.text)
	if verb == "task" {
		if r.task, rest = word(rest); r.task == "" {
			return r, errors.New("task needs a name, such as billing.*")
		}
		verb, rest = word(rest)
	}
	if err := r.set(verb, rest); err != nil {
		return r, fmt.Errorf("rule %q: %w", r.text, err)
	}
	if r.task == "" && (r.whole != 0 || r.position != 0) {
		return r, fmt.Errorf("rule %q: %s needs the name of a task before it: task billing.* %s", r.text, verb, verb)
	}
	return r, nil
}

// set sets what a rule hides.
func (r *rule) set(verb, rest string) (err error) {
	switch verb {
	case "key":
		if r.keys = spellings(rest); strings.Trim(rest, "*?") == "" {
			return errors.New("key needs a name, such as *password* or ssn")
		}
		return nil
	case "text":
		if rest == "" {
			return errors.New(`text needs a regular expression, such as \b\d{3}-\d{2}-\d{4}\b`)
		}
		if r.pattern, err = regexp.Compile(rest); err == nil && r.pattern.MatchString("") {
			return errors.New("the expression matches the empty text, and so everything")
		}
		return err
	case "arg":
		if r.position, err = strconv.Atoi(rest); err != nil || r.position < 0 || r.position >= maxPosition {
			return errors.New("arg needs the position of an argument from 0")
		}
		r.position++
		return nil
	}
	if rest != "" {
		return fmt.Errorf("nothing may follow %s", verb)
	}
	switch verb {
	case "cards":
		r.cards = true
	case "args":
		r.whole = fieldArgs
	case "kwargs":
		r.whole = fieldKwargs
	case "result":
		r.whole = fieldResult
	case "error":
		r.whole = fieldError
	case "all":
		r.whole = allFields
	default:
		return errors.New("a rule is key NAME, text EXPRESSION or cards, or, after task NAME, also arg POSITION, args, kwargs, result, error or all")
	}
	return nil
}

// word splits off the first word.
func word(s string) (first, rest string) {
	s = strings.TrimSpace(s)
	i := strings.IndexAny(s, " \t")
	if i < 0 {
		return s, ""
	}
	return s[:i], strings.TrimSpace(s[i:])
}

// ReadRules reads rules, one a line. Empty lines, and those that begin with #, are skipped. The error names the line.
func ReadRules(from io.Reader) ([]string, error) {
	var rules []string
	lines := bufio.NewScanner(from)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if text == "" || text[0] == '#' {
			continue
		}
		if _, err := parseRule(text); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		rules = append(rules, text)
	}
	return rules, lines.Err()
}

// maxSpellings bounds the spellings of a key.
const maxSpellings = 8

// spellings returns the globs of the spellings of a key: each _, - or . between its words may be left out, as in API-KEY and
// apiKey for api_key.
func spellings(key string) []string {
	list := []string{""}
	for _, c := range []byte(normal(key)) {
		if c == '_' && 2*len(list) <= maxSpellings {
			list = append(list, list...)
			for i := range len(list) / 2 {
				list[i] += "_"
			}
			continue
		}
		for i := range list {
			list[i] += string([]byte{c})
		}
	}
	return list
}

// normal returns a key in lower case with _ for what separates words.
func normal(key string) string {
	for i := range len(key) {
		if c := key[i]; c >= 'A' && c <= 'Z' || c == '-' || c == ' ' || c == '.' || c >= 0x80 {
			return strings.NewReplacer("-", "_", " ", "_", ".", "_").Replace(strings.ToLower(key))
		}
	}
	return key
}

// glob reports whether s matches a pattern with * for any text and ? for a byte.
func glob(pattern, s string) bool {
	star, at := -1, 0 // the last *, and where what it stands for ends
	i := 0
	for j := 0; ; {
		switch {
		case i < len(pattern) && pattern[i] == '*':
			star, at = i, j
			i++
		case j < len(s) && i < len(pattern) && (pattern[i] == '?' || pattern[i] == s[j]):
			i++
			j++
		case j == len(s):
			return i == len(pattern)
		case star >= 0:
			at++
			i, j = star+1, at
		default:
			return false
		}
	}
}

// fragments returns fragments of which every text with a key that matches contains one. It is false if they are too short to
// look for.
func (r *rule) fragments() (list []fragment, ok bool) {
	for _, key := range r.keys {
		var longest fragment
		for end := len(key); end > 0; {
			start := end
			for start > 0 && key[start-1] != '*' && key[start-1] != '?' && key[start-1] < 0x80 { // others differ by case in more than a byte
				start--
			}
			if f := keyFragment(key[start:end], end == len(key)); start < end && len(f.bytes) > len(longest.bytes) {
				longest = f
			}
			end = start - 1
		}
		if len(longest.bytes) < minFragment {
			return nil, false
		}
		list = append(list, longest)
	}
	return list, true
}
