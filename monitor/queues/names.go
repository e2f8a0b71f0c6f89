package queues

import (
	"strings"

	"github.com/google/uuid"
)

// Hidden reports whether a queue is by its name not a task queue: a mailbox or reply queue of remote control, a
// queue of events, of results (rpc), of a broadcast, of native delayed delivery, or one of Umbel's own.
func Hidden(name string) bool {
	for _, prefix := range []string{"celeryev.", "celery_delayed_", "bcast.", "amq.gen-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, ".pidbox") || own(name) || len(name) == 36 && uuid.Validate(name) == nil
}

// own reports whether Umbel generates such names: umbel. or umbel.reply. and 26 characters of base 32.
func own(name string) bool {
	rest, ok := strings.CutPrefix(name, "umbel.")
	rest = strings.TrimPrefix(rest, "reply.")
	return ok && len(rest) == 26 && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyz234567") == ""
}
