package evaluate

import (
	"encoding/json"
	"slices"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/history"
)

// decision is what changes by one record.
type decision struct {
	box    *mailbox
	leads  bool // this process tells
	told   told // by another that led
	update *history.AlertUpdate
}

// open takes the firings of a rule that should be open, and returns the stored ones without those that are.
func (d *decision) open(rule *Rule, firings []alert.Firing, stored []history.AlertFiring) ([]history.AlertFiring, error) {
	tells := d.leads && !rule.Muted(d.update.At) && len(rule.Receivers) > 0
	for _, f := range firings {
		known := d.told[firingKey(rule, f.Subject)]
		at := slices.IndexFunc(stored, func(o history.AlertFiring) bool { return o.RuleID == rule.ID && o.Subject == f.Subject })
		if at < 0 {
			n, err := newFiring(rule, f, tells || known)
			if err != nil {
				return nil, err
			}
			d.update.Began = append(d.update.Began, n)
			d.box.add(rule, n, tells && !known)
			continue
		}
		if !stored[at].Notified && (tells || known) { // it was muted, or another led
			d.update.Notified = append(d.update.Notified, stored[at].ID)
			d.box.add(rule, stored[at], tells && !known)
		}
		stored = slices.Delete(stored, at, at+1)
	}
	return stored, nil
}

// end ends a stored firing. One that was told stays open until it is told, or known, that it ended.
func (d *decision) end(rules []Rule, o history.AlertFiring) {
	at := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == o.RuleID })
	ended := at >= 0 && d.told != nil && !d.told[firingKey(&rules[at], o.Subject)] // and told by another
	if at >= 0 && o.Notified && !d.leads && !ended {
		return
	}
	d.update.Ended = append(d.update.Ended, o.ID)
	if o.End = d.update.At; o.End.Before(o.Start) { // the clock was set back
		o.End = o.Start
	}
	if at >= 0 {
		d.box.add(&rules[at], o, o.Notified && d.leads && !ended && !rules[at].Muted(d.update.At))
	}
}

func newFiring(rule *Rule, f alert.Firing, notified bool) (history.AlertFiring, error) {
	evidence, err := json.Marshal(f.Evidence)
	return history.AlertFiring{
		RuleID: rule.ID, RuleName: rule.Name, Subject: f.Subject, Start: f.Start, Value: f.Value, Evidence: evidence, Notified: notified,
	}, err
}
