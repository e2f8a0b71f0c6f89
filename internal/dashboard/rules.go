package dashboard

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/state/query"
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
func Edit(rules redact.Options) (history.Edit, error) {
	x, err := redact.New(rules)
	if err != nil {
		return history.Edit{}, err
	}
	var records alert.Decoder
	return history.Edit{
		ID: describeRules(x), Event: x.Event, Text: x.Text,
		Message: func(kind string) bool { return kind == command.KindNotification },
		Query:   func(text string) string { return redactedQuery(x, text) },
		Record: func(record []byte) ([]byte, error) {
			return records.Edit(record, func(text string) string { return redactedQuery(x, text) })
		},
		Command: func(kind string, payload []byte) []byte { return command.Redacted(x, kind, payload) },
		Audit:   func(target, detail string) (string, string) { return command.RedactedAudit(x, target, detail) },
	}, nil
}

// redactedQuery redacts the values in a query. A redacted one is looked for as it stands in tasks, not as a pattern: a rule must
// not come to mean everything.
func redactedQuery(x *redact.Redactor, text string) string {
	q, err := query.Parse(text)
	if err != nil {
		return x.Text(text)
	}
	if e, changed := redactedExpr(x, q.Expr()); changed {
		text = query.New(e).String()
	}
	return x.Text(text)
}

func redactedExpr(x *redact.Redactor, e query.Expr) (_ query.Expr, changed bool) {
	list := func(all []query.Expr) []query.Expr {
		edited := make([]query.Expr, len(all))
		for i := range all {
			var one bool
			edited[i], one = redactedExpr(x, all[i])
			changed = changed || one
		}
		return edited
	}
	switch e := e.(type) {
	case query.And:
		return query.And(list(e)), changed
	case query.Or:
		return query.Or(list(e)), changed
	case query.Not:
		inner, changed := redactedExpr(x, e.X)
		return query.Not{X: inner}, changed
	case query.Term:
		e.Values = slices.Clone(e.Values)
		for i, v := range e.Values {
			shown := x.Text(v.Text)
			if shown == v.Text {
				continue
			}
			e.Values[i].Text, changed = shown, true
			if v.Match == query.Pattern {
				e.Values[i].Match = query.Contains
			}
		}
		return e, changed
	}
	return e, false
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
