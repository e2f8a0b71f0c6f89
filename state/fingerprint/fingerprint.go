// Package fingerprint groups failures that have the same cause: it parses Python's exceptions and tracebacks,
// removes what differs between executions, and hashes the rest. It stores and counts nothing.
package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/umbelhq/umbel/internal/truncate"
	"github.com/umbelhq/umbel/state"
)

// Fingerprint is what failures of one bug have in common. Fields are empty where nothing is known.
type Fingerprint struct {
	Type    string // of the exception, without its module: ConnectionError
	Message string // with placeholders for what varies: cannot reach <address>
	Place   string // where it was raised, by file and function: billing.py in charge
}

// Most bytes of each part. A message has placeholders in it, so it may become three times as long.
const (
	maxType    = 100
	maxMessage = 300
	maxPlace   = 200
)

// Of returns the fingerprint of an exception's repr and its traceback, either of which may be empty. It
// is the same for another line of the same function, another directory, and other numbers, identifiers
// and quoted text in the message.
func Of(exception, traceback string) Fingerprint {
	f := ofRepr(exception)
	r := read(traceback)
	if r.typ != "" {
		f.Type, f.Message = r.typ, r.message
		// Billiard's exceptions say their own repr.
		if inner := ofRepr(r.message); inner.Type == r.typ {
			f.Message = inner.Message
		}
	}
	f.Type = truncate.Bytes(f.Type, maxType)
	f.Message = normal(f.Message)
	f.Place = truncate.Bytes(r.place, maxPlace)
	return f
}

// OfTask returns the fingerprint of a failed task and the group that it is in.
func OfTask(t *state.Task) (Fingerprint, ID) {
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	f := Of(text(t.Exception), text(t.Traceback))
	return f, f.ID(text(t.Name))
}

// Other is the fingerprint of a group that takes what has no group of its own.
func Other() Fingerprint { return Fingerprint{Type: "(other)"} }

// ofRepr reads Type(arguments). What is of another form is all message.
func ofRepr(repr string) Fingerprint {
	repr = strings.TrimSpace(repr)
	if repr == "None" || strings.HasPrefix(repr, wrapper+"(") {
		return Fingerprint{}
	}
	typ, args, ok := strings.Cut(repr, "(")
	if !ok || !isTypeName(typ) || !strings.HasSuffix(args, ")") {
		return Fingerprint{Message: repr}
	}
	return Fingerprint{Type: unqualified(typ), Message: unquoted(strings.TrimSuffix(strings.TrimSuffix(args, ")"), ","))}
}

// unquoted returns the text of a sole argument that is a string, else the arguments.
func unquoted(args string) string {
	if len(args) < 2 || args[0] != '\'' && args[0] != '"' || args[len(args)-1] != args[0] {
		return args
	}
	text := args[1 : len(args)-1]
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case args[0]:
			return args // of several
		}
	}
	return strings.NewReplacer(`\'`, `'`, `\"`, `"`, `\n`, "\n", `\t`, "\t", `\\`, `\`).Replace(text)
}

// isTypeName reports whether s may be the name of a class, with or without its module.
func isTypeName(s string) bool {
	for _, c := range []byte(s) {
		if !isWord(c) && c != '.' && c != '<' && c != '>' {
			return false
		}
	}
	return s != "" && (isLetter(s[0]) || s[0] == '_')
}

// unqualified returns a dotted name's last part.
func unqualified(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// ID names a group of failures: those of tasks of one name with one fingerprint. It is never 0.
type ID int64

// ID returns the group of failures of tasks called name.
func (f Fingerprint) ID(name string) ID {
	h := sha256.New()
	for _, part := range []string{name, f.Type, f.Message, f.Place} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	return max(ID(binary.BigEndian.Uint64(h.Sum(nil))>>1), 1)
}

// String returns 16 hexadecimal digits.
func (id ID) String() string {
	return hex.EncodeToString(binary.BigEndian.AppendUint64(nil, uint64(id)))
}

// ParseID reads what String wrote, and reports whether that is what s is.
func ParseID(s string) (ID, bool) {
	var b [8]byte
	if n, err := hex.Decode(b[:], []byte(s[:min(len(s), 16)])); err != nil || n != 8 || len(s) != 16 {
		return 0, false
	}
	id := ID(binary.BigEndian.Uint64(b[:]))
	return id, id > 0 && id.String() == s
}
