package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/redact"
)

// redactionRules is the action of audit records that tell with which rules of redaction Umbel began.
const redactionRules = "redaction rules"

// auditRules appends an audit record if the rules of redaction are not those of the newest such record, or not the defaults if
// there is none. Rules are options of the process, so whoever starts it changes them.
func (d *Dashboard) auditRules(ctx context.Context, r *redact.Redactor) error {
	detail := describeRules(r)
	last, _, err := d.history.AuditLog(ctx, history.AuditFilter{Kind: history.AuditRule, Action: redactionRules, Limit: 1})
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	before := describeRules(redact.Default())
	if len(last) > 0 {
		before = last[0].Detail
	}
	if before == detail {
		return nil
	}
	err = d.history.AppendAudit(ctx, history.AuditRecord{ // as it is: redacted, it could not be compared
		At: time.Now(), Kind: history.AuditRule, Outcome: history.AuditAccepted, Actor: "command line", Action: redactionRules, Detail: detail,
	})
	if err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	return nil
}

// Edit returns the edit of a history that redacts by rules.
func Edit(rules redact.Options) (sqlite.Edit, error) {
	x, err := redact.New(rules)
	if err != nil {
		return sqlite.Edit{}, err
	}
	return sqlite.Edit{
		ID: describeRules(x), Event: x.Event, Text: x.Text,
		Command: func(kind string, payload []byte) []byte { return command.Redacted(x, kind, payload) },
		Audit:   func(target, detail string) (string, string) { return command.RedactedAudit(x, target, detail) },
	}, nil
}

// describeRules returns what tells rules of redaction from others, as JSON. Their texts may be long.
func describeRules(r *redact.Redactor) string {
	digest, own := sha256.New(), 0
	rules, _ := r.Status()
	for _, rule := range rules {
		fmt.Fprintf(digest, "%t %s\n", rule.Default, rule.Rule)
		if !rule.Default {
			own++
		}
	}
	b, err := json.Marshal(struct {
		Defaults bool   `json:"defaults"`
		Own      int    `json:"own_rules"`
		Digest   string `json:"sha256"`
	}{r.Forms(), own, hex.EncodeToString(digest.Sum(nil))})
	if err != nil {
		panic(err) // texts and numbers
	}
	return string(b)
}
