package evaluate

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
)

const (
	// noteVersion begins a note, which goes on with the keys of firings.
	noteVersion = "alerts-1"
	// noteInterval is how often a note is written anew while notifications wait to be sent, and nobody says when one was.
	noteInterval = 2 * time.Second
)

// Others are the Umbels that watch the same cluster, as peers.Peers knows them. One of them leads: it tells of alerts. The
// others judge silently, and learn from its notes what it has told, so that whoever leads next does not tell it again.
type Others interface {
	Leads() bool
	Note(note string)
	Noted() string
}

// told is what another that led has told of: keys of firings that began and have not ended. It is nil if that is unknown.
type told map[string]bool

// told returns what the last leader has told, as long as this process does not lead or has just begun to.
func (s *Service) told() told {
	if s.o.Others == nil || s.led {
		return nil
	}
	words := strings.Fields(s.o.Others.Noted())
	if len(words) == 0 || words[0] != noteVersion {
		return nil
	}
	t := told{}
	for _, key := range words[1:] {
		t[key] = true
	}
	return t
}

// firingKey is the same for all Umbels that have the same rule for the same receivers.
func firingKey(r *Rule, subject string) string {
	sum := sha256.Sum256([]byte(string(r.Definition) + "\x00" + strings.Join(r.Receivers, "\x00") + "\x00\x00" + subject))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// note writes what this process has told, for whoever leads next: the firings whose notifications have been sent, or failed
// for good. What its outbox still holds is not told; the next leader had better repeat it.
func (s *Service) note(ctx context.Context) error {
	s.unsent = false
	if s.o.Others == nil || s.o.Outbox == nil || !s.Tells() {
		return nil
	}
	if s.o.Sent != nil {
		s.sent = s.o.Sent() // before the outbox is read, so that no outcome goes unseen
	}
	waiting, err := command.UnsentNotifications(ctx, s.o.Outbox)
	if err != nil {
		return err
	}
	s.unsent = len(waiting) > 0
	words := []string{noteVersion}
	st := s.Status()
	for i := range st.Open {
		f := &st.Open[i]
		at := slices.IndexFunc(st.Rules, func(r Rule) bool { return r.ID == f.RuleID })
		if at < 0 || !f.Notified || waits(f, waiting) {
			continue
		}
		words = append(words, firingKey(&st.Rules[at], f.Subject))
	}
	s.o.Others.Note(strings.Join(words, " "))
	return nil
}

// waits reports whether a notification of a firing may be among those that are not sent yet.
func waits(f *history.AlertFiring, unsent []receivers.Notification) bool {
	for _, n := range unsent {
		if n.More > 0 && !f.Start.After(n.At) {
			return true
		}
		for _, a := range n.Alerts {
			if a.RuleID == f.RuleID && a.Subject == f.Subject && a.End == nil && a.Start.Equal(f.Start) {
				return true
			}
		}
	}
	return false
}
