// Package redact takes secrets out of what Umbel reads before anything else sees it: events, inspections, stored results,
// messages and settings of workers. It is pure: it reads nothing and keeps no text.
package redact

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/umbelhq/umbel/state"
)

// Options of a Redactor. The zero value is the defaults.
type Options struct {
	NoDefaults bool     // leave out what Defaults returns, and the secrets known by their form
	Rules      []string // as ReadRules reads them, at most MaxRules
}

// Redactor takes secrets out of text. It is safe for concurrent use. A nil Redactor changes nothing.
type Redactor struct {
	rules    []activeRule
	defaults int // how many of them are defaults, at the front
	forms    bool
	tokens   []token
	urls     *regexp.Regexp // between two URLs of a list
	settings settings
	filter   *prefilter // of keys and forms, nil if they are to be looked for in every text
	everyone []int      // rules for tasks of any name
	named    []int      // rules for tasks of certain names
	byForm   atomic.Uint64

	expressions []int // of everyone, those without keys
}

// activeRule is a rule and what it did.
type activeRule struct {
	rule
	redacted atomic.Uint64
}

// RuleStatus is a rule with what it did since the start.
type RuleStatus struct {
	Rule     string
	Default  bool
	Redacted uint64 // values
}

// New returns a Redactor. The error names the rule that is wrong.
func New(o Options) (*Redactor, error) {
	texts := o.Rules
	r := &Redactor{forms: !o.NoDefaults}
	if !o.NoDefaults {
		texts = append(Defaults(), o.Rules...)
		r.defaults = len(Defaults())
	}
	if len(o.Rules) > MaxRules {
		return nil, fmt.Errorf("at most %d rules are possible", MaxRules)
	}
	r.rules = make([]activeRule, len(texts))
	var fragments []fragment
	slow := false
	for i, text := range texts {
		parsed, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		r.rules[i].rule = parsed
		switch {
		case parsed.keys != nil:
			list, ok := parsed.fragments()
			fragments, slow = append(fragments, list...), slow || !ok
		case parsed.task == "":
			r.expressions = append(r.expressions, i)
		}
		if parsed.task == "" {
			r.everyone = append(r.everyone, i)
		} else {
			r.named = append(r.named, i)
		}
	}
	r.tokens, r.urls = newTokens(), betweenURLs()
	if r.forms {
		for _, t := range r.tokens {
			if t.text {
				fragments = append(fragments, t.fragment())
			}
		}
	}
	if !slow {
		r.filter = newPrefilter(append(fragments, disguised()...))
	}
	r.settings = newSettings(r)
	return r, nil
}

// Default returns a Redactor with the defaults alone.
func Default() *Redactor {
	r, err := New(Options{})
	if err != nil {
		panic(err) // the defaults are right, as a test shows
	}
	return r
}

// Status returns the rules, defaults first, and how many values were redacted by their form.
func (r *Redactor) Status() (rules []RuleStatus, byForm uint64) {
	if r == nil {
		return nil, 0
	}
	for i := range r.rules {
		rules = append(rules, RuleStatus{r.rules[i].text, i < r.defaults, r.rules[i].redacted.Load()})
	}
	return rules, r.byForm.Load()
}

// Forms reports whether secrets that are known by their form are redacted.
func (r *Redactor) Forms() bool { return r != nil && r.forms }

// NeedsNames reports whether there are rules for certain tasks, so that Event needs the names of tasks.
func (r *Redactor) NeedsNames() bool { return r != nil && len(r.named) > 0 }

// Event redacts an event in place. name is that of its task if the event has none. Rules for certain tasks apply to tasks of
// unknown names, too: what arrives before the name must not reveal more.
func (r *Redactor) Event(e *state.Event, name string) {
	if r == nil {
		return
	}
	if !e.Kind.Task() {
		for key, value := range e.Extra {
			e.Extra[key] = r.member(key, value)
		}
		return
	}
	if e.Args == "" && e.Kwargs == "" && e.Result == "" && e.Exception == "" && e.Traceback == "" {
		return
	}
	named := r.named
	if len(named) > 0 {
		named = r.rulesOf(cmp.Or(e.Name, name))
	}
	e.Args = r.field(e.Args, fieldArgs, named)
	e.Kwargs = r.field(e.Kwargs, fieldKwargs, named)
	e.Result = r.field(e.Result, fieldResult, named)
	e.Exception = r.field(e.Exception, fieldError, named)
	e.Traceback = r.field(e.Traceback, fieldError, named)
}

// Call is the texts of a task's call and what became of it, as reprs or JSON.
type Call struct{ Args, Kwargs, Result, Exception, Traceback string }

// Task redacts the texts of a task. Rules for certain tasks apply if its name is unknown, which is empty, too.
func (r *Redactor) Task(name string, c Call) Call {
	if r == nil {
		return c
	}
	named := r.rulesOf(name)
	return Call{
		Args: r.field(c.Args, fieldArgs, named), Kwargs: r.field(c.Kwargs, fieldKwargs, named), Result: r.field(c.Result, fieldResult, named),
		Exception: r.field(c.Exception, fieldError, named), Traceback: r.field(c.Traceback, fieldError, named),
	}
}

// rulesOf returns the rules for tasks of a name, all if it is unknown.
func (r *Redactor) rulesOf(name string) []int {
	if name == "" {
		return r.named
	}
	var list []int
	for _, i := range r.named {
		if glob(r.rules[i].task, name) {
			list = append(list, i)
		}
	}
	return list
}

// field redacts one text of a task.
func (r *Redactor) field(s string, f fields, named []int) string {
	if s == "" {
		return s
	}
	for _, i := range named {
		if rule := &r.rules[i]; rule.whole&f != 0 {
			if s != mask {
				rule.redacted.Add(1)
			}
			return mask
		}
	}
	if f == fieldArgs {
		for _, i := range named {
			if rule := &r.rules[i]; rule.position > 0 {
				s = r.element(s, rule)
			}
		}
	}
	return r.text(s, named)
}

// element redacts one positional argument.
func (r *Redactor) element(s string, rule *activeRule) string {
	start, end, ok := elementAt(s, rule.position-1)
	if !ok {
		return s
	}
	q, _ := opening(s, start)
	if q.char == 0 {
		q = quote{char: '\''}
		if strings.Contains(s[:start], `"`) || strings.HasPrefix(s, "[") { // JSON
			q.char = '"'
		}
	}
	to := q.around(mask)
	if s[start:end] == to {
		return s
	}
	rule.redacted.Add(1)
	return s[:start] + to + s[end:]
}

// Redacted reports whether something in s was redacted.
func Redacted(s string) bool { return strings.Contains(s, mask) }

// Text redacts a text that is of no certain task: a log line, a message, an answer.
func (r *Redactor) Text(s string) string {
	if r == nil || s == "" {
		return s
	}
	return r.text(s, nil)
}

// text applies what holds for all texts, and rules with keys and expressions of named.
func (r *Redactor) text(s string, named []int) string {
	if r.filter == nil || r.filter.found(s) || hasPassword(s) {
		if r.forms {
			s = r.byForms(s)
		}
		find := func(key string, _ bool) *activeRule { return r.keyRule(key, named) }
		s = options(keys(s, find), find)
	}
	for _, i := range r.expressions {
		s = r.expression(s, &r.rules[i])
	}
	for _, i := range named {
		s = r.expression(s, &r.rules[i])
	}
	return s
}

// hasPassword reports whether s may hold a URL with a password.
func hasPassword(s string) bool { return strings.IndexByte(s, '@') >= 0 && strings.Contains(s, "://") }

// byForms redacts what is a secret by its form.
func (r *Redactor) byForms(s string) string {
	before := s
	for _, t := range r.tokens {
		if t.text && strings.Contains(s, t.sign) {
			s = t.form.ReplaceAllLiteralString(s, mask)
		}
	}
	if hasPassword(s) {
		s = urls(s, r.urls)
	}
	if s != before {
		r.byForm.Add(1)
	}
	return s
}

// urls redacts the passwords of URLs, and leaves what only resembles them, such as a:b@c.
func urls(s string, between *regexp.Regexp) string {
	var out strings.Builder
	for len(s) > 0 {
		n := strings.IndexAny(s, " \t\r\n")
		if n < 0 {
			n = len(s)
		} else {
			n++
		}
		if word := s[:n]; strings.Contains(word, "://") {
			out.WriteString(passwords(word, between))
		} else {
			out.WriteString(word)
		}
		s = s[n:]
	}
	return out.String()
}

func (r *Redactor) expression(s string, rule *activeRule) string {
	switch {
	case rule.pattern != nil:
		n := uint64(len(rule.pattern.FindAllStringIndex(s, -1)))
		if n > 0 {
			rule.redacted.Add(n)
			s = rule.pattern.ReplaceAllLiteralString(s, mask)
		}
	case rule.cards:
		var n uint64
		if s, n = cards(s); n > 0 {
			rule.redacted.Add(n)
		}
	}
	return s
}

// keyRule returns the rule whose key matches, nil if none does.
func (r *Redactor) keyRule(key string, named []int) *activeRule {
	if strings.IndexByte(key, '\\') >= 0 {
		key = unescape(key)
	}
	last := ""
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		last = normal(key[i+1:])
	}
	key = normal(strings.TrimLeft(key, "-"))
	for _, list := range [][]int{r.everyone, named} {
		for _, i := range list {
			for _, spelling := range r.rules[i].keys {
				if glob(spelling, key) || last != "" && glob(spelling, last) {
					return &r.rules[i]
				}
			}
		}
	}
	return nil
}

// Matching returns which keys of a text rules match, for a preview. It counts nothing.
func (r *Redactor) Matching(s string) []string {
	var list []string
	if r == nil {
		return nil
	}
	for at := 0; at < len(s); at++ {
		n := strings.IndexAny(s[at:], separators)
		if n < 0 {
			break
		}
		at += n
		key, q, _ := keyBefore(s, at)
		if key != "" && (q.char != 0 || s[at] != ',') && r.keyRule(key, nil) != nil && !slices.Contains(list, key) {
			list = append(list, key)
		}
	}
	return list
}

// member redacts the JSON of a field by its key.
func (r *Redactor) member(key, value string) string {
	if rule := r.keyRule(key, nil); rule != nil && value != "null" && value != `""` {
		rule.redacted.Add(1)
		return `"` + mask + `"`
	}
	return string(r.JSON("", []byte(value)))
}
