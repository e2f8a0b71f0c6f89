package web

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/payload"
)

const (
	pastFirings = 50  // on a page of the history
	openThen    = 500 // that fired at an instant
	paramBefore = "before"
	// withheld stands for what those may not see who may not see payloads.
	withheld = "It asks for arguments, results or exceptions, which you may not see."
)

// alertPages are the pages of alerts.
type alertPages struct{ *common }

// load shows what fires, the rules, and what has fired.
func (p *alertPages) load(ctx context.Context, a address) (page, error) {
	before, err := parseBefore(a.query)
	if err != nil {
		return page{}, err
	}
	var at time.Time // zero is now
	s, now := p.alerts.Status(), p.now()
	if p.instant != nil {
		at = p.instant.At
		s = evaluate.Status{Tells: true}
		if s.Open, _, err = p.alerts.Firings(ctx, history.AlertFilter{Open: true, At: at, Limit: openThen}); err != nil {
			return page{}, err
		}
	}
	past, next, err := p.alerts.Firings(ctx, history.AlertFilter{Ended: true, At: at, Before: before, Limit: pastFirings})
	if err != nil {
		return page{}, err
	}
	v := templates.Alerts{Error: s.Error, Elsewhere: !s.Tells && !p.urls.ReadOnlyAlerts, Receivers: len(p.alerts.Receivers())}
	hidden := map[int64]bool{}
	for _, r := range s.Rules {
		hidden[r.ID] = !p.audience.Payload && payload.Reads(r.Rule.Query)
		v.Rules = append(v.Rules, p.alertRule(r, s, now, hidden[r.ID]))
	}
	for _, f := range s.Open {
		shown := p.alertFiring(f, hidden[f.RuleID])
		shown.Muted = slices.ContainsFunc(s.Rules, func(r evaluate.Rule) bool { return r.ID == f.RuleID && r.Muted(now) })
		v.Firing = append(v.Firing, shown)
	}
	for _, f := range past {
		v.Past = append(v.Past, p.alertFiring(f, hidden[f.RuleID]))
	}
	for _, g := range alert.Suggestions() {
		if p.instant != nil || slices.ContainsFunc(s.Rules, func(r evaluate.Rule) bool { return r.Name == g.Name }) {
			continue
		}
		v.Suggestions = append(v.Suggestions, templates.AlertSuggestion{
			Name: g.Name, Why: g.Why, Sentence: g.Rule.Sentence(), Href: p.urls.Prefix + "/act/alert?" + alertValues(g.Name, g.Rule, nil, true).Encode() + "&" + templates.CheckParam + "=1",
		})
	}
	pg := page{url: "/alerts", title: "Alerts", section: templates.SectionAlerts}
	if before != 0 {
		pg.url, v.Newest = "/alerts?before="+strconv.FormatInt(before, 10), p.urls.Prefix+"/alerts"
	}
	if next != 0 {
		v.Older = p.urls.Prefix + "/alerts?before=" + strconv.FormatInt(next, 10)
	}
	pg.view = v
	return pg, nil
}

func parseBefore(q url.Values) (int64, error) {
	text := q.Get(paramBefore)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, unknown(templates.Problem{Title: "Not found", Message: "This page of the history of alerts does not exist."})
	}
	return n, nil
}

func (p *common) alertRule(r evaluate.Rule, s evaluate.Status, now time.Time, hidden bool) templates.AlertRule {
	v := templates.AlertRule{
		ID: r.ID, Name: r.Name, Sentence: r.Rule.Sentence(), Enabled: r.Enabled, Invalid: r.Invalid, Receivers: r.Receivers,
		Edit: p.urls.Prefix + "/act/alert?id=" + strconv.FormatInt(r.ID, 10),
	}
	if hidden {
		v.Sentence = withheld
	}
	if r.Muted(now) {
		v.MutedUntil, v.MutedBy = micros(r.MutedUntil), r.MutedBy
	}
	for _, f := range s.Open {
		if f.RuleID == r.ID {
			v.Firing++
		}
	}
	return v
}

func (p *common) alertFiring(f history.AlertFiring, hidden bool) templates.AlertFiring {
	v := templates.AlertFiring{
		ID: f.ID, Rule: f.RuleName, Subject: f.Subject, Start: micros(f.Start), End: micros(f.End),
	}
	if p.instant == nil || !f.AcknowledgedAt.After(p.instant.At) {
		v.AcknowledgedAt, v.AcknowledgedBy = micros(f.AcknowledgedAt), f.AcknowledgedBy
	}
	var e alert.Evidence
	if json.Unmarshal(f.Evidence, &e) != nil {
		return v
	}
	if v.Text = e.Text; hidden || !p.audience.Payload && payload.Reads(e.Query) { // the rule may be another by now
		v.Text = withheld
		return v
	}
	v.Href = p.urls.Prefix + evaluate.EvidencePath(e)
	return v
}

// alertBell counts the firings that nobody looks after now. Pages of a time past have none.
func (p *common) alertBell() templates.AlertBell {
	if p.alerts == nil || p.instant != nil {
		return templates.AlertBell{}
	}
	return templates.AlertBell{Firing: p.alerts.Status().Unacknowledged(p.now())}
}

// alertReceivers returns who can be told, without what gives access to them.
func (p *common) alertReceivers() (list []templates.AlertReceiver) {
	if p.alerts == nil {
		return nil
	}
	for _, r := range p.alerts.Receivers() {
		list = append(list, templates.AlertReceiver{Name: r.Name, Kind: r.Kind(), Address: r.Address()})
	}
	return list
}
