package redact

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// secretWords are the names of settings whose values Celery hides, in any case, and some more.
const secretWords = `API|TOKEN|KEY|SECRET|PASS|PROFANITIES_LIST|SIGNATURE|DATABASE|BEAT_DBURI|CREDENTIAL|AUTH|DSN|PWD`

// namesSecret reports whether s contains the name of a secret.
func namesSecret(s string) bool {
	s = strings.ToUpper(s)
	for word := range strings.SplitSeq(secretWords, "|") {
		if strings.Contains(s, word) {
			return true
		}
	}
	return false
}

// settings hides what may be secret in the settings of workers, whose names are not those of arguments: any that contains KEY
// or AUTH counts, as for Celery. It is safe for concurrent use.
type settings struct {
	setting *regexp.Regexp // such a setting in a report, with what follows on the line and below it, indented
	tokens  []token
	urls    *regexp.Regexp // between two URLs of a list
	rules   *Redactor
	certain *activeRule // for values of names of secrets
	doubt   *activeRule // for values of names that may be of secrets
}

func newSettings(r *Redactor) settings {
	const word = `[\w.\-]*(?:` + secretWords + `)[\w.\-]*`
	return settings{
		setting: regexp.MustCompile(`(?m)^((?i:` + word + `)):[ \t]*\S[^\n]*(?:\n[ \t]+[^\n]*)*`),
		tokens:  r.tokens, urls: r.urls, rules: r, certain: new(activeRule), doubt: &activeRule{rule: rule{random: true}},
	}
}

// Settings returns JSON of a worker without secrets: the values of keys that name one by Umbel's own list or by a rule, and
// within strings the passwords of URLs and what has the form of a secret, such as a provider's token or a private key, at any
// depth. The list holds whatever the options are. What is not JSON becomes null.
func (r *Redactor) Settings(value json.RawMessage) json.RawMessage {
	return changed(value, r.settings.value)
}

// SettingsText is Settings for a text that is not JSON.
func (r *Redactor) SettingsText(s string) string { return r.settings.text(s) }

// Stats is Settings, but counts of tasks stay, whatever the names of tasks are.
func (r *Redactor) Stats(value json.RawMessage) json.RawMessage {
	m := r.settings
	return changed(value, func(v any) any {
		stats, ok := v.(map[string]any)
		if !ok {
			return m.value(v)
		}
		total, counted := stats["total"].(map[string]any)
		for _, n := range total {
			_, number := n.(json.Number)
			counted = counted && number
		}
		out, _ := m.value(v).(map[string]any)
		if counted {
			out["total"] = total
		}
		return out
	})
}

// changed decodes value, has it changed, and encodes it again.
func changed(value json.RawMessage, change func(any) any) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return json.RawMessage("null")
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(change(v)) != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// value masks what JSON decodes to.
func (m settings) value(v any) any {
	switch v := v.(type) {
	case string:
		return m.text(v)
	case []any:
		if len(v) == 2 { // a dict as pairs
			if name, ok := v[0].(string); ok && len(name) < 100 && m.hides(name) {
				return []any{m.text(name), m.secret(v[1])}
			} else if ok && len(name) < 100 && mayNameSecret(name) {
				v[1] = m.suspect(v[1])
			}
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = m.value(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			switch {
			case m.hides(key):
				item = m.secret(item)
			case mayNameSecret(key):
				item = m.suspect(item)
			}
			out[m.text(key)] = m.value(item)
		}
		return out
	}
	return v
}

// hides reports whether the values of a key are hidden.
func (m settings) hides(key string) bool { return namesSecret(key) || m.rules.keyRule(key, nil) != nil }

// secret masks a value whole, except for those that reveal nothing.
func (m settings) secret(v any) any {
	switch v {
	case nil, true, false, "":
		return v
	}
	return mask
}

// text masks a string.
func (m settings) text(s string) string {
	for _, t := range m.tokens {
		if strings.Contains(s, t.sign) {
			s = t.form.ReplaceAllLiteralString(s, mask)
		}
	}
	if strings.Contains(s, "@") {
		s = passwords(s, m.urls)
	}
	s = m.rules.text(s, nil)
	if !strings.ContainsAny(s, "=:") {
		return s
	}
	s = keys(s, m.find)
	if !namesSecret(s) {
		return s
	}
	return m.setting.ReplaceAllStringFunc(s, func(lines string) string {
		name, _, _ := strings.Cut(lines, ":")
		if strings.HasSuffix(name, "Error") { // not a setting but an exception
			return lines
		}
		return name + ": " + mask
	})
}

// find is a finder of names of settings. Labels are left to the expression for reports, which knows exceptions.
func (m settings) find(name string, label bool) *activeRule {
	switch {
	case label:
		return nil
	case namesSecret(name):
		return m.certain
	case mayNameSecret(name):
		return m.doubt
	}
	return nil
}

// passwords masks user:password@ in each word. Where it is not clear how far a password goes, more is masked rather
// than less.
func passwords(s string, betweenURLs *regexp.Regexp) string {
	var b strings.Builder
	for len(s) > 0 {
		space := strings.IndexAny(s, " \t\r\n")
		if space < 0 {
			space = len(s)
		}
		word, start := s[:space], 0
		for _, next := range betweenURLs.FindAllStringIndex(word, -1) {
			b.WriteString(password(word[start:next[0]]))
			start = next[0]
		}
		b.WriteString(password(word[start:]))
		if space < len(s) {
			b.WriteByte(s[space])
			space++
		}
		s = s[space:]
	}
	return b.String()
}

// password masks what stands between the first colon, but for that of a scheme, and the last @ that can end it.
func password(word string) string {
	from := 0
	if i := strings.Index(word, "://"); i >= 0 {
		from = i + len("://")
	}
	rest := word[from:]
	if end := strings.IndexAny(rest, "?#"); end >= 0 && strings.Contains(rest[:end], "@") {
		rest = rest[:end]
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return word
	}
	colon := strings.IndexByte(rest[:at], ':')
	if colon < 0 {
		return word
	}
	return word[:from+colon+1] + mask + word[from+at:]
}
