package locks

import (
	"regexp"
	"slices"
	"strings"
)

// Kind is what wrote a lock.
type Kind string

// Kinds.
const (
	Idempotent Kind = "idempotent"       // lock:celery:exec:NAME:SHA256
	Once       Kind = "celery-once"      // qo_NAME_ARGUMENT-VALUE…
	Singleton  Kind = "celery-singleton" // PREFIX and the MD5 of the call
	OtherKind  Kind = "other"            // another key that matches a pattern
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Idempotent, Once, Singleton, OtherKind} }

// State is what a lock says of its call.
type State string

// States. A lock of celery-once or celery-singleton is held from when its task was sent.
const (
	Processing   State = "processing"
	Completed    State = "completed"
	Held         State = "held"
	UnknownState State = "unknown"
)

const (
	onceMark      = "qo_"
	execMark      = "celery:exec:"
	sha256Digits  = 64
	md5Digits     = 32
	hexadecimal   = "0123456789abcdef"
	singletonMark = "singleton"
)

// identity is what a key says.
type identity struct {
	kind        Kind
	name        string // of the task, empty if the key does not tell
	fingerprint string // of the call, empty if the key does not hold one
	arguments   string // of celery-once, as the key spells them
}

// identify takes a key apart. Names are those of known tasks, which celery-once sets off from arguments by an underscore only.
func identify(key string, names map[string]bool) identity {
	if _, rest, ok := strings.Cut(key, execMark); ok {
		if cut := strings.LastIndexByte(rest, ':'); cut > 0 && isHex(rest[cut+1:], sha256Digits) {
			return identity{kind: Idempotent, name: rest[:cut], fingerprint: rest[cut+1:]}
		}
	}
	if rest, ok := strings.CutPrefix(key, onceMark); ok {
		id := identity{kind: Once}
		for i := 1; i <= len(rest); i++ { // the longest name wins
			if (i == len(rest) || rest[i] == '_') && names[rest[:i]] {
				id.name, id.arguments = rest[:i], strings.TrimPrefix(rest[i:], "_")
			}
		}
		return id
	}
	if n := len(key) - md5Digits; n > 0 && strings.Contains(strings.ToLower(key[:n]), singletonMark) && isHex(key[n:], md5Digits) {
		return identity{kind: Singleton, fingerprint: key[n:]}
	}
	return identity{kind: OtherKind}
}

func isHex(s string, digits int) bool {
	return len(s) == digits && strings.Trim(s, hexadecimal) == ""
}

// content is what a value says.
type content struct {
	state State
	task  string // id of the task that holds it, empty if the value does not tell
}

// taskID is what celery-singleton stores, as Celery makes ids.
var taskID = regexp.MustCompile(`^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$`)

// read takes the value of a lock of a kind apart.
func (k Kind) read(e Entry) content {
	switch {
	case e.Other || e.Long:
		return content{state: UnknownState}
	case k == Once:
		return content{state: Held}
	case k == Singleton:
		return content{state: Held, task: e.Value}
	case taskID.MatchString(e.Value):
		return content{state: Held, task: e.Value}
	}
	return plainOrFenced(e.Value)
}

// onceParts returns the arguments of a call as celery-once spells them, in its order. It is false where Python's str of one is
// not known.
func onceParts(kwargs map[string]any) ([]string, bool) {
	var parts []string
	for _, name := range slices.Sorted(keysOf(kwargs)) {
		text, ok := pythonText(kwargs[name])
		if !ok {
			return nil, false
		}
		parts = append(parts, name+"-"+text)
	}
	return parts, true
}

// spells reports whether text is made of some of the parts, in their order: celery-once may use only some arguments.
func spells(text string, parts []string) bool {
	if text == "" {
		return true
	}
	for i, p := range parts {
		if rest, ok := strings.CutPrefix(text, p); ok && (rest == "" || rest[0] == '_' && spells(rest[1:], parts[i+1:])) {
			return true
		}
	}
	return false
}
