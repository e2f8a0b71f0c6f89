package queues

import (
	"strings"

	"github.com/google/uuid"
)

// Hidden says whether a queue is none of tasks by its name: a mailbox or a queue of replies of remote control, a queue
// of events, of results (rpc), of a broadcast, of native delayed delivery, or one of Umbel's own.
func Hidden(name string) bool {
	for _, prefix := range []string{"celeryev.", "celery_delayed_", "bcast.", "amq.gen-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, ".pidbox") || own(name) || len(name) == 36 && uuid.Validate(name) == nil
}

// own says whether name is one that Umbel makes up: umbel. or umbel.reply. and 26 characters of base 32.
func own(name string) bool {
	rest, ok := strings.CutPrefix(name, "umbel.")
	rest = strings.TrimPrefix(rest, "reply.")
	return ok && len(rest) == 26 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
