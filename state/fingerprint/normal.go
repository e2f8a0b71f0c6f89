package fingerprint

import (
	"bytes"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
)

// Placeholders for what differs from one failure to the next.
const (
	aText    = "<text>" // in quotes
	aNumber  = "<n>"    // also 1.5, 1,000 and 3.11.7
	aTime    = "<time>" // date, time of day or both
	aHex     = "<hex>"  // digests and addresses in memory
	anID     = "<id>"   // UUIDs, tokens
	aPath    = "<path>" // of a file
	aURL     = "<url>"
	aAddress = "<address>" // of a host, a mailbox or a worker
)

// normal returns a message on one line with placeholders for what varies. A message that has been through it
// comes out as it went in.
func normal(message string) string {
	head := truncate.Bytes(message, 4*maxMessage)
	words := strings.Join(strings.Fields(head), " ")
	cut := len(head) < len(message) || len(words) > maxMessage
	message = truncate.Bytes(words, maxMessage)
	for {
		n := normalizer{in: message, cut: cut}
		n.run()
		// Every change leaves fewer digits, quotes or separators, so that it ends.
		next := string(bytes.TrimSpace(n.out))
		if next == message {
			return message
		}
		message = next
	}
}

// normalizer goes over a message once.
type normalizer struct {
	in  string
	cut bool // in is the beginning of a longer text
	i   int
	out []byte
}

func (n *normalizer) run() {
	for n.i < len(n.in) {
		switch c := n.in[n.i]; {
		case isQuote(c) && n.quoted():
		case isDelimiter(c) || isQuote(c):
			n.out = append(n.out, c)
			n.i++
		default:
			n.token()
		}
	}
}

// quoted replaces a string in quotes, if one begins here. An apostrophe inside a word is no quote.
func (n *normalizer) quoted() bool {
	if last := len(n.out) - 1; last >= 0 && isWord(n.out[last]) {
		return false
	}
	quote := n.in[n.i]
	for j := n.i + 1; j < len(n.in); j++ {
		switch {
		case n.in[j] == '\\':
			j++
		case n.in[j] == quote && (j+1 == len(n.in) || !isLetter(n.in[j+1])):
			n.i = j + 1
			n.put(aText)
			return true
		}
	}
	if n.cut && n.i+1 < len(n.in) && n.in[n.i+1] != ' ' {
		n.i = len(n.in) // its end is in what was cut off
		n.put(aText)
		return true
	}
	return false
}

// token replaces what varies of the characters up to the next delimiter.
func (n *normalizer) token() {
	j := n.i
	for j < len(n.in) && !isDelimiter(n.in[j]) && !isQuote(n.in[j]) {
		j++
	}
	if strings.Contains(n.in[n.i:j], "://") {
		for j < len(n.in) && strings.IndexByte(" <>()[]{}|,;", n.in[j]) < 0 && !isQuote(n.in[j]) {
			j++ // the query of a URL
		}
	}
	token := n.in[n.i:j]
	n.i = j
	if j < len(n.in) && isQuote(n.in[j]) && isPrefix(token) {
		return // of b'text'
	}
	core := strings.TrimRight(token, ".:!?")
	if placeholder := classify(core); placeholder != "" {
		n.put(placeholder)
	} else {
		n.mixed(core)
	}
	n.out = append(n.out, token[len(core):]...)
}

// put writes a placeholder; a list of equal ones becomes one, since lists vary in length.
func (n *normalizer) put(placeholder string) {
	for _, between := range []string{", ", ",", " "} {
		if between == " " && placeholder != aTime {
			continue // date and time of day are one
		}
		if bytes.HasSuffix(n.out, []byte(placeholder+between)) {
			n.out = n.out[:len(n.out)-len(between)]
			return
		}
	}
	n.out = append(n.out, placeholder...)
}

// mixed writes a token with placeholders for its numbers and identifiers: ORD-17 is ORD-<n>.
func (n *normalizer) mixed(token string) {
	for token != "" {
		j := 0
		for j < len(token) && (isLetter(token[j]) || isDigit(token[j])) {
			j++
		}
		if j == 0 {
			n.out = append(n.out, token[0])
			token = token[1:]
			continue
		}
		run := token[:j]
		switch letters, digits, hex := census(run); {
		case digits == 0:
			n.out = append(n.out, run...)
		case letters == 0:
			j = len(number(token))
			n.put(aNumber)
		case hex && len(run) >= 8:
			n.out = append(n.out, aHex...)
		case digits >= 2 && len(run) >= 16:
			n.out = append(n.out, anID...)
		default:
			n.withoutDigits(run)
		}
		token = token[j:]
	}
}

// withoutDigits writes a word with a placeholder for each number in it.
func (n *normalizer) withoutDigits(word string) {
	for i := 0; i < len(word); i++ {
		switch {
		case !isDigit(word[i]):
			n.out = append(n.out, word[i])
		case i == 0 || !isDigit(word[i-1]):
			n.out = append(n.out, aNumber...)
		}
	}
}

// number returns the digits at the start of s, with separators that stand between them.
func number(s string) string {
	end := 0
	for i := 0; i < len(s); i++ {
		switch {
		case isDigit(s[i]):
			end = i + 1
		case s[i] != '.' && s[i] != ':' && s[i] != '-' && s[i] != '+' || end < i:
			return s[:end]
		}
	}
	return s[:end]
}

// classify returns the placeholder for a token as a whole, empty if it is to be seen in parts.
func classify(s string) string {
	_, digits, hex := census(strings.ReplaceAll(s, "-", ""))
	at := strings.IndexByte(s, '@')
	switch {
	case strings.Contains(s, "://"):
		return aURL
	case isPath(s):
		return aPath
	case at > 0 && at < len(s)-1:
		return aAddress
	case isTime(s):
		return aTime
	case len(s) > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X'):
		return aHex
	case hex && digits > 0 && len(s) == 36 && strings.Count(s, "-") == 4, hex && digits > 0 && len(s) == 32:
		return anID
	case isHost(s):
		return aAddress
	}
	return ""
}

// isPath reports whether s is the name of a file from the root, from here, from home or from a drive.
func isPath(s string) bool {
	for _, start := range []string{"/", "./", "../", "~/", `\\`} {
		if len(s) > len(start) && strings.HasPrefix(s, start) {
			return true
		}
	}
	return len(s) > 3 && isLetter(s[0]) && s[1] == ':' && (s[2] == '\\' || s[2] == '/')
}

// isTime reports whether s is a date, a time of day, or both in one token, as ISO 8601 has them.
func isTime(s string) bool {
	shape := []byte(s)
	for i, c := range shape {
		if isDigit(c) {
			shape[i] = '0'
		}
	}
	switch form := string(shape); {
	case strings.HasPrefix(form, "0000-00-00"):
		return len(form) == 10 || form[10] == 'T' || form[10] == '+' || form[10] == 'Z'
	case strings.HasPrefix(form, "00:00"):
		return strings.Trim(form, "0:.+-Z") == ""
	}
	return false
}

// isHost reports whether s is an IP address, with or without a port.
func isHost(s string) bool {
	if strings.Count(s, ".") == 3 && strings.Trim(s, "0123456789.:") == "" {
		return isDigit(s[0])
	}
	return strings.Count(s, ":") >= 2 && strings.Trim(s, "0123456789abcdefABCDEF:.") == "" && strings.Trim(s, ":") != ""
}

// census counts the letters and digits of a run of them, and reports whether all are hexadecimal.
func census(run string) (letters, digits int, hex bool) {
	hex = true
	for _, c := range []byte(run) {
		switch {
		case isDigit(c):
			digits++
		case 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F':
			letters++
		default:
			letters++
			hex = false
		}
	}
	return letters, digits, hex
}

// isPrefix reports whether a word before a quote belongs to it: b'…', rb"…".
func isPrefix(s string) bool {
	return len(s) > 0 && len(s) <= 2 && strings.Trim(s, "bBrRuU") == ""
}

func isQuote(c byte) bool { return c == '\'' || c == '"' || c == '`' }

func isDelimiter(c byte) bool { return strings.IndexByte(" ,;=()[]{}<>|", c) >= 0 }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isLetter holds for all of a character outside ASCII.
func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80 }

func isWord(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' }
