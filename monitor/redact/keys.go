package redact

import "strings"

// maxRead bounds how often each byte of a text is read on average in search of the ends of values, which hostile text makes
// long and of no use. What is left then is masked.
const maxRead = 16

// finder returns the rule for a key, nil if there is none. label is whether it stands before a colon without quotes.
type finder func(key string, label bool) *activeRule

// keys redacts the values of keys.
func keys(s string, find finder) string {
	var out strings.Builder
	done := 0                            // of s
	left := maxRead * max(len(s), 1<<10) // bytes to read
	for at := 0; at < len(s); {
		n := strings.IndexAny(s[at:], separators)
		if n < 0 {
			break
		}
		at += n
		from, to, with, rule := valueOf(s, at, find)
		if left -= max(to-at, 0); left < 0 {
			out.WriteString(s[done:max(at, done)])
			out.WriteString(mask)
			return out.String()
		}
		if at++; rule == nil || from < done {
			continue
		}
		rule.redacted.Add(1)
		out.WriteString(s[done:from])
		out.WriteString(with)
		at, done = max(to, at), to
	}
	if done == 0 {
		return s
	}
	out.WriteString(s[done:])
	return out.String()
}

// valueOf returns the value after the separator at s[at], what to write instead, and the rule that says so, nil if none does. Text
// was read up to to.
func valueOf(s string, at int, find finder) (from, to int, with string, by *activeRule) {
	key, q, start := keyBefore(s, at)
	if key == "" || q.char == 0 && s[at] == ',' || s[at] == ':' && strings.HasPrefix(s[at:], "://") || s[at] == '=' && strings.HasPrefix(s[at:], "==") {
		return 0, 0, "", nil
	}
	if by = find(key, q.char == 0 && s[at] == ':'); by == nil && strings.EqualFold(key, "value") {
		by = ruleOfName(s, start, find)
	}
	if by == nil {
		return 0, 0, "", nil
	}
	from = at + 1
	for from < len(s) && (s[from] == ' ' || s[from] == '\t' || q.char != 0 && (s[from] == '\n' || s[from] == '\r')) {
		from++
	}
	stops := stopsColon
	switch {
	case q.char != 0:
		stops = stopsQuoted
	case s[at] == '=':
		stops = stopsEqual
	case len(key) >= len("cookie") && strings.EqualFold(key[len(key)-len("cookie"):], "cookie"): // a header with several values
		stops = stopsLine
	}
	to, quotes, empty := valueAt(s, from, q, stops)
	if empty || s[at] == ',' && !option(s, key, from) && !pair(s, start, to) || by.random && !random(strings.Trim(s[from:to], `\'"`)) {
		return 0, to, "", nil
	}
	return from, to, quotes.around(mask), by
}

// ruleOfName returns the rule for the name before s[at], where 'value' begins: {'name': 'password', 'value': 'x'}.
func ruleOfName(s string, at int, find finder) *activeRule {
	comma := strings.TrimRight(s[max(0, at-maxKey):at], " \t\r\n")
	if !strings.HasSuffix(comma, ",") {
		return nil
	}
	name, q, start := keyBefore(s, max(0, at-maxKey)+len(comma)-1)
	colon := strings.TrimRight(s[:start], " \t")
	if q.char == 0 || !strings.HasSuffix(colon, ":") {
		return nil
	}
	if label, _, _ := keyBefore(s, len(colon)-1); !isLabel(label) {
		return nil
	}
	return find(name, false)
}

// isLabel reports whether the member of a dict named key may be the name of a value that is another member.
func isLabel(key string) bool { return strings.EqualFold(key, "name") || strings.EqualFold(key, "key") }

// options redacts the values of options of commands: --password x.
func options(s string, find finder) string {
	var out strings.Builder
	done := 0
	for at := 0; ; {
		n := strings.Index(s[at:], "--")
		if n < 0 {
			break
		}
		at += n
		end := at
		for end < len(s) && end-at < maxKey && isWord(s[end]) {
			end++
		}
		from := end
		for from < len(s) && s[from] == ' ' {
			from++
		}
		rule := (*activeRule)(nil)
		if from > end && from < len(s) && s[from] != '-' {
			rule = find(s[at:end], false)
		}
		at = max(end, at+2)
		if rule == nil {
			continue
		}
		to, quotes, empty := valueAt(s, from, quote{}, stopsWord)
		if empty {
			continue
		}
		rule.redacted.Add(1)
		out.WriteString(s[done:from])
		out.WriteString(quotes.around(mask))
		at, done = to, to
	}
	return out.String() + s[done:]
}

// option reports whether a key and the string at s[from] are two of the arguments of a command: '--password', 'x'.
func option(s, key string, from int) bool {
	_, content := opening(s, from)
	return strings.HasPrefix(key, "-") && content > 0 && !strings.HasPrefix(s[content:], "-")
}

// pair reports whether a key and a value are the two of a tuple or list.
func pair(s string, start, end int) bool {
	for end < len(s) && s[end] == ' ' {
		end++
	}
	for start > 0 && strings.IndexByte(`bBuU`, s[start-1]) >= 0 {
		start--
	}
	return start > 0 && (s[start-1] == '(' || s[start-1] == '[') && (end >= len(s) || s[end] == ')' || s[end] == ']')
}
