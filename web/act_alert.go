package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/payload"
)

// askAlert asks for a rule, and says what it would have done in the last week.
func (p *forms) askAlert(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	v, err := p.alertForm(ctx, r.URL.Query(), checking(r))
	p.showAct(w, r, v, alertRefusal(err))
}

// saveAlert saves a rule.
func (p *forms) saveAlert(w http.ResponseWriter, r *http.Request) {
	if !p.readForm(w, r) {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	rule, err := p.alertOf(r.PostForm)
	if err == nil {
		rule, err = p.alerts.Save(ctx, rule, auth.FromContext(r.Context()).User)
	}
	if err != nil {
		v, _ := p.alertForm(ctx, r.PostForm, false)
		p.showAct(w, r, v, alertRefusal(err))
		return
	}
	p.record(r, "save alert rule", rule.Name)
	http.Redirect(w, r, p.urls.Prefix+"/alerts", http.StatusSeeOther)
}

// alertRefusal says why a rule is refused in the words of forms.
func alertRefusal(err error) error {
	if wrong, ok := errors.AsType[*alert.Error](err); ok {
		return &command.Error{Kind: command.Invalid, Field: wrong.Field, Message: strings.TrimSuffix(wrong.Message, ".")}
	}
	if errors.Is(err, history.ErrNotFound) {
		return &command.Error{Kind: command.NotFound, Message: "This rule no longer exists"}
	}
	return err
}

// alertValues are the fields of the form of a rule.
func alertValues(name string, r alert.Rule, to []string, enabled bool) url.Values {
	decimal := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
	v := url.Values{
		"name": {name}, "kind": {string(r.Kind)}, "query": {r.Query}, "receivers": {strings.Join(to, ", ")}, "enabled": {strconv.FormatBool(enabled)},
		"for": {decimal(float64(r.For) / 60)}, "limit": {decimal(r.Limit)}, "measure": {string(r.Measure)}, "per": {cmp.Or(string(r.Per), "all")},
		"window": {decimal(float64(r.Window) / 60)}, "least": {strconv.FormatInt(r.Least, 10)}, "factor": {decimal(r.Factor)}, "side": {"above"},
	}
	if r.Below {
		v.Set("side", "below")
	}
	return v
}

// alertOf reads the form of a rule.
func (p *forms) alertOf(v url.Values) (evaluate.Rule, error) {
	var wrong error
	number := func(name, field, label string, unit float64) float64 {
		text := strings.TrimSpace(v.Get(name))
		if text == "" {
			return 0
		}
		n, err := strconv.ParseFloat(text, 64)
		if err != nil && wrong == nil {
			wrong = &alert.Error{Field: field, Message: label + " is not a number."}
		}
		return n * unit
	}
	r := evaluate.Rule{
		AlertRule: history.AlertRule{Name: v.Get("name"), Enabled: v.Get("enabled") == "true"},
		Rule: alert.Rule{
			Kind: alert.Kind(v.Get("kind")), Query: v.Get("query"), Measure: alert.Measure(v.Get("measure")), Below: v.Get("side") == "below",
			Limit: number("limit", "limit", "The limit", 1), Window: int64(number("window", "window_seconds", "The window", 60)),
			For: int64(number("for", "for_seconds", "The duration", 60)), Least: int64(number("least", "least", "The number of runs", 1)),
			Factor: number("factor", "factor", "The factor", 1), Per: alert.Per(v.Get("per")),
		},
	}
	if r.Rule.Per == "all" {
		r.Rule.Per = alert.All
	}
	for name := range strings.SplitSeq(v.Get("receivers"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			r.Receivers = append(r.Receivers, name)
		}
	}
	if id := v.Get("id"); id != "" {
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return r, history.ErrNotFound
		}
		r.ID = n
	}
	if !p.audience.Payload && payload.Reads(r.Rule.Query) && wrong == nil {
		wrong = &alert.Error{Field: "query", Message: withheld}
	}
	return r, wrong
}

// alertForm is the form of a rule, with what it would have done if it is to be checked.
func (p *forms) alertForm(ctx context.Context, v url.Values, check bool) (templates.Form, error) {
	form := templates.Form{
		Section: templates.SectionAlerts, Title: "New rule", Path: "/act/alert", Button: "Save",
		Crumbs: []templates.Link{{Text: "Alerts", Href: p.urls.Prefix + "/alerts"}},
	}
	if id := v.Get("id"); id != "" {
		form.Title, form.Hidden = "Change rule", []templates.Param{{Name: "id", Value: id}}
		n, _ := strconv.ParseInt(id, 10, 64)
		saved, err := p.alerts.Find(ctx, n)
		if err != nil {
			return form, err
		}
		if !p.audience.Payload && payload.Reads(saved.Rule.Query) {
			return form, auth.Withheld()
		}
		if !v.Has("name") {
			v = alertValues(saved.Name, saved.Rule, saved.Receivers, saved.Enabled)
			v.Set("id", id)
		}
		form.Links = []templates.Link{{Text: "Delete this rule", Href: p.urls.Prefix + "/act/alert-delete?id=" + url.QueryEscape(id)}}
	} else if !v.Has("name") {
		v = alertValues("", newRule(alert.Kind(v.Get("kind"))), nil, true)
		for _, k := range alert.Kinds() {
			form.Tabs = append(form.Tabs, templates.Choice{
				Text: k.Label(), Href: p.urls.Prefix + "/act/alert?kind=" + string(k), Current: k == alert.Kind(v.Get("kind")),
			})
		}
	}
	kind := alert.Kind(v.Get("kind"))
	form.Description = kind.Doc()
	form.Hidden = append(form.Hidden, templates.Param{Name: "kind", Value: v.Get("kind")})
	form.Fields = p.alertFields(v)
	if !check {
		return form, nil
	}
	rule, err := p.alertOf(v)
	if err != nil {
		return form, err
	}
	tested, err := p.alerts.Backtest(ctx, rule.Rule)
	if err != nil {
		return form, err
	}
	form.Preview = &templates.Preview{
		Preview: command.Preview{Summary: tested.Rule.Sentence()}, Alert: &templates.AlertBacktest{Backtest: tested, URL: evaluate.EvidencePath},
	}
	change := url.Values{}
	for name, values := range v {
		if name != templates.CheckParam {
			change[name] = values
		}
	}
	form.Change = p.urls.Prefix + form.Path + "?" + change.Encode()
	return form, nil
}

// newRule returns a rule of a kind with defaults.
func newRule(k alert.Kind) alert.Rule {
	r := alert.Rule{Kind: k}
	if k == alert.Threshold {
		r.Measure, r.Window = alert.Failed, 300
	}
	if checked, err := r.Check(); err == nil {
		return checked
	}
	return r
}

// alertFields are the fields that the kind of a rule has.
func (p *forms) alertFields(v url.Values) []templates.Input {
	kind := alert.Kind(v.Get("kind"))
	var names []string
	for _, r := range p.alerts.Receivers() {
		names = append(names, r.Name)
	}
	hint := "None are configured: --alert-receivers names a file."
	if len(names) > 0 {
		hint = "Separated by commas: " + strings.Join(names, ", ") + "."
	}
	limit := "Tasks, percent or seconds."
	if kind == alert.StuckQueue {
		limit = "Messages that may wait."
	}
	if kind == alert.ClockOffset {
		limit = "Seconds that the clock may be ahead or behind."
	}
	query := "Names, workers and queues, such as name:billing.*. Empty is all."
	if kind == alert.Threshold {
		query = "Names, workers and queues, such as name:billing.*; the measure tasks takes every query. Empty is all."
	}
	var measures []string
	for _, m := range alert.Measures() {
		measures = append(measures, string(m))
	}
	all := []struct {
		kinds []alert.Kind // empty is all
		templates.Input
	}{
		{nil, templates.Input{Name: "name", Field: "name", Label: "Name", Required: true}},
		{[]alert.Kind{alert.Threshold}, templates.Input{Name: "measure", Field: "measure", Label: "Measure", Kind: templates.InputChoice, Options: measures, Required: true}},
		{nil, templates.Input{Name: "query", Field: "query", Label: "Query", Hint: query}},
		{[]alert.Kind{alert.Threshold}, templates.Input{Name: "side", Label: "Fires", Kind: templates.InputChoice, Options: []string{"above", "below"}, Required: true}},
		{[]alert.Kind{alert.Threshold, alert.StuckQueue, alert.ClockOffset}, templates.Input{Name: "limit", Field: "limit", Label: "Limit", Required: true, Hint: limit}},
		{[]alert.Kind{alert.Threshold}, templates.Input{Name: "per", Field: "per", Label: "Per", Kind: templates.InputChoice, Options: []string{"all", "name", "worker", "queue"}, Required: true, Hint: "Judge each name, worker or queue, or all together."}},
		{[]alert.Kind{alert.Threshold}, templates.Input{Name: "window", Field: "window_seconds", Label: "Window in minutes", Required: true, Hint: "The events that are counted; at most an hour."}},
		{[]alert.Kind{alert.Threshold, alert.DeafWorker, alert.StuckQueue, alert.ClockOffset}, templates.Input{Name: "for", Field: "for_seconds", Label: "Duration in minutes", Hint: "How long it must be so before the rule fires."}},
		{[]alert.Kind{alert.OverdueRun, alert.SilentSchedule}, templates.Input{Name: "factor", Field: "factor", Label: "Factor", Required: true, Hint: "Times the 99th percentile of the run time, or times the interval."}},
		{[]alert.Kind{alert.Threshold, alert.OverdueRun}, templates.Input{Name: "least", Field: "least", Label: "Least number of runs", Hint: "Shares, percentiles and run times of fewer are not judged."}},
		{nil, templates.Input{Name: "receivers", Field: "receivers", Label: "Receivers", Hint: hint}},
		{nil, templates.Input{Name: "enabled", Label: "Enabled", Kind: templates.InputCheck}},
	}
	var fields []templates.Input
	for _, f := range all {
		if len(f.kinds) == 0 || slices.Contains(f.kinds, kind) {
			f.Value = v.Get(f.Name)
			fields = append(fields, f.Input)
		}
	}
	return fields
}

// askDeleteAlert asks before a rule goes.
func (p *forms) askDeleteAlert(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), loadTimeout)
	defer cancel()
	v := templates.Form{
		Section: templates.SectionAlerts, Title: "Delete rule", Path: "/act/alert-delete", Danger: true,
		Crumbs: []templates.Link{{Text: "Alerts", Href: p.urls.Prefix + "/alerts"}},
		Hidden: []templates.Param{{Name: "id", Value: r.FormValue("id")}},
	}
	n, _ := strconv.ParseInt(r.FormValue("id"), 10, 64)
	rule, err := p.alerts.Find(ctx, n)
	if err == nil {
		v.Preview = &templates.Preview{Preview: command.Preview{Summary: "Delete the rule “" + rule.Name + "”. What it fires for ends, and nobody is told."}}
	}
	p.showAct(w, r, v, alertRefusal(err))
}

// deleteAlert deletes a rule.
func (p *forms) deleteAlert(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.ParseInt(r.PostFormValue("id"), 10, 64)
	p.alertDone(w, r, "delete alert rule", strconv.FormatInt(n, 10), p.alerts.Delete(r.Context(), n))
}

// acknowledgeAlert records that the visitor looks after a firing.
func (p *forms) acknowledgeAlert(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.ParseInt(param(r, "id"), 10, 64)
	p.alertDone(w, r, "acknowledge alert", strconv.FormatInt(n, 10), p.alerts.Acknowledge(r.Context(), n, auth.FromContext(r.Context()).User))
}

// muteAlert mutes a rule for minutes, 0 unmutes it.
func (p *forms) muteAlert(w http.ResponseWriter, r *http.Request) {
	n, _ := strconv.ParseInt(r.PostFormValue("rule"), 10, 64)
	minutes, err := strconv.ParseInt(r.PostFormValue("minutes"), 10, 32)
	if err != nil {
		p.problem(w, r, http.StatusBadRequest, templates.Problem{Title: "Not muted", Message: "The number of minutes is missing or wrong."})
		return
	}
	err = p.alerts.Mute(r.Context(), n, time.Duration(minutes)*time.Minute, auth.FromContext(r.Context()).User)
	p.alertDone(w, r, "mute alert rule", strconv.FormatInt(n, 10), err)
}

// alertDone records what was done and leads back to the alerts.
func (p *forms) alertDone(w http.ResponseWriter, r *http.Request, action, target string, err error) {
	wrong, invalid := errors.AsType[*alert.Error](err)
	switch {
	case invalid:
		p.problem(w, r, http.StatusBadRequest, templates.Problem{Title: "Nothing was changed", Message: wrong.Message})
	case errors.Is(err, history.ErrNotFound):
		p.problem(w, r, http.StatusNotFound, templates.Problem{
			Title: "Not found", Message: "There is no such alert anymore.", Back: p.urls.Prefix + "/alerts", BackText: "Alerts",
		})
	case err != nil:
		p.notLoaded(w, r, err)
	default:
		p.record(r, action, target)
		http.Redirect(w, r, p.urls.Prefix+"/alerts", http.StatusSeeOther)
	}
}

// testAlert sends a receiver a test.
func (p *forms) testAlert(w http.ResponseWriter, r *http.Request) {
	receipt, err := p.service().TestReceiver(r.Context(), p.by(r), r.PostFormValue("receiver"))
	if err != nil {
		status, _, why := p.refusal(r.Context(), err)
		p.problem(w, r, status, templates.Problem{Title: "Nothing was sent", Message: why})
		return
	}
	p.taken(w, r, receipt)
}
