package queues

import "strings"

// Hidden says whether a queue is none of tasks by its name: a mailbox or a queue of replies of remote control, a queue
// of events, of results (rpc), of a broadcast, of native delayed delivery, or one of Umbel's own.
func Hidden(name string) bool {
	for _, prefix := range []string{"celeryev.", "celery_delayed_", "bcast.", "amq.gen-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, ".pidbox") || own(name) || uuid(name)
}

// own says whether name is one that Umbel makes up: umbel. or umbel.reply. and 26 characters of base 32.
func own(name string) bool {
	rest, ok := strings.CutPrefix(name, "umbel.")
	rest = strings.TrimPrefix(rest, "reply.")
	return ok && len(rest) == 26 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

func uuid(name string) bool {
	if len(name) != len("00000000-0000-0000-0000-000000000000") {
		return false
	}
	for i := range len(name) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		if hyphen != (name[i] == '-') || (!hyphen && !strings.ContainsRune("0123456789abcdefABCDEF", rune(name[i]))) {
			return false
		}
	}
	return true
}
