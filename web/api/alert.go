package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/web/auth"
	"github.com/umbelhq/umbel/web/payload"
)

// Alert is a time during which a rule fired.
type Alert struct {
	ID             Int     `json:"id"`
	RuleID         Int     `json:"rule_id"`
	Rule           string  `json:"rule" doc:"Name of the rule, as it was then."`
	Subject        string  `json:"subject" doc:"Task name, worker, queue or task ID; empty if the rule is judged for all together."`
	Text           *string `json:"text" doc:"What the rule saw; null if you may not see it."`
	Value          float64 `json:"value"`
	Query          *string `json:"query" doc:"Query of the tasks that it is about, with their time."`
	Path           *string `json:"path" doc:"Page of what the rule saw."`
	Start          Time    `json:"start"`
	End            Time    `json:"end" doc:"Null while it fires."`
	AcknowledgedAt Time    `json:"acknowledged_at"`
	AcknowledgedBy *string `json:"acknowledged_by"`
}

// AlertRule is a rule of alerts.
type AlertRule struct {
	ID         Int       `json:"id"`
	Name       string    `json:"name"`
	Enabled    bool      `json:"enabled"`
	Rule       *RuleBody `json:"rule" doc:"Null if you may not see it."`
	Sentence   string    `json:"sentence" doc:"When it fires."`
	Invalid    *string   `json:"invalid" doc:"Why it cannot be judged."`
	Receivers  []string  `json:"receivers" nullable:"false"`
	MutedUntil Time      `json:"muted_until"`
	MutedBy    *string   `json:"muted_by"`
	SavedAt    Time      `json:"saved_at"`
	SavedBy    *string   `json:"saved_by"`
}

// RuleBody says when a rule fires.
type RuleBody struct {
	_ struct{} `additionalProperties:"false"`

	Kind    string  `json:"kind" enum:"threshold,deaf_worker,overdue_run,silent_schedule,stuck_queue,clock_offset"`
	Query   string  `json:"query,omitempty" doc:"What is judged: by name, worker and queue, with the measure tasks by anything."`
	Measure string  `json:"measure,omitempty" doc:"Of kind threshold: received, succeeded, failed, retried, failure_share (percent), wait_p50, wait_p95, run_p50, run_p95, run_p99 (seconds), depth or tasks."`
	Below   bool    `json:"below,omitempty" doc:"Fire below the limit, not above."`
	Limit   float64 `json:"limit,omitempty"`
	Window  int64   `json:"window_seconds,omitempty" doc:"At most an hour."`
	Per     string  `json:"per,omitempty" doc:"name, worker or queue; empty for all together."`
	Least   int64   `json:"least,omitempty" doc:"Number of runs below which shares, percentiles and run times are not judged."`
	For     int64   `json:"for_seconds,omitempty" doc:"How long it must be so; at most a day."`
	Factor  float64 `json:"factor,omitempty" doc:"Of kind overdue_run and silent_schedule."`
}

// AlertRuleBody is a rule to save.
type AlertRuleBody struct {
	_ struct{} `additionalProperties:"false"`

	Name      string   `json:"name" minLength:"1" maxLength:"100"`
	Enabled   bool     `json:"enabled,omitempty"`
	Rule      RuleBody `json:"rule"`
	Receivers []string `json:"receivers,omitempty" maxItems:"50" doc:"Names of receivers."`
}

// AlertBacktest is what a rule would have done in the last week.
type AlertBacktest struct {
	Sentence string           `json:"sentence"`
	From     Time             `json:"from"`
	LogFrom  Time             `json:"log_from" doc:"When the log begins that rules are judged by; null if that is before from."`
	Times    int              `json:"times" doc:"How often it would have fired."`
	Firings  []BacktestFiring `json:"firings" nullable:"false" doc:"The newest 500, oldest first."`
}

// BacktestFiring is a time during which a rule would have fired.
type BacktestFiring struct {
	Subject string  `json:"subject"`
	Text    string  `json:"text"`
	Value   float64 `json:"value"`
	Start   Time    `json:"start"`
	End     Time    `json:"end"`
}

// AlertReceiver is who can be told of alerts.
type AlertReceiver struct {
	Name    string `json:"name"`
	Kind    string `json:"kind" enum:"webhook,slack,email,command"`
	Address string `json:"address" doc:"Where it is, without what gives access."`
}

type listAlerts struct {
	Open   bool  `query:"open" doc:"Only those that fire."`
	Before int64 `query:"before" minimum:"0" doc:"The next of the page before this one; 0 is from the newest."`
	Limit  int   `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// AlertPath names a firing or a rule.
type AlertPath struct {
	Origin
	ID int64 `path:"id" minimum:"1"`
}

type alertRuleInput struct {
	Origin
	Body AlertRuleBody
}

type changeAlertRule struct {
	AlertPath
	Body AlertRuleBody
}

type muteInput struct {
	AlertPath
	Seconds int64 `query:"seconds" minimum:"0" maximum:"7776000" doc:"0 unmutes."`
}

// TestReceiverBody names who gets a test.
type TestReceiverBody struct {
	_ struct{} `additionalProperties:"false"`

	Receiver string `json:"receiver" minLength:"1" maxLength:"100" example:"ops"`
}

type testReceiver struct {
	SendOptions
	Body TestReceiverBody
}

type backtestInput struct{ Body RuleBody }

func (a *api) registerAlerts(h huma.API) {
	if a.alerts == nil {
		return
	}
	huma.Register(h, operation(h, auth.View, "list-alerts", "/alerts", "List alerts, newest first", unavailable), a.listAlerts)
	huma.Register(h, operation(h, auth.View, "list-alert-rules", "/alerts/rules", "List rules of alerts", unavailable), a.alertRules)
	huma.Register(h, operation(h, auth.View, "list-alert-receivers", "/alerts/receivers", "List who can be told of alerts"), a.alertReceivers)
	if a.readOnly {
		return
	}
	huma.Register(h, postBody(h, auth.EditAlert, "backtest-alert-rule", "/alerts/backtest", "Say what a rule would have done in the last week", unavailable), a.backtest)
	add := postBody(h, auth.EditAlert, "add-alert-rule", "/alerts/rules", "Save a rule of alerts", unavailable)
	add.DefaultStatus = http.StatusCreated
	huma.Register(h, add, a.addAlertRule)
	change := postBody(h, auth.EditAlert, "change-alert-rule", "/alerts/rules/{id}", "Replace a rule of alerts", notFound, unavailable)
	change.Method = http.MethodPut
	huma.Register(h, change, a.changeAlertRule)
	remove := operation(h, auth.EditAlert, "delete-alert-rule", "/alerts/rules/{id}", "Delete a rule of alerts", notFound, unavailable)
	remove.Method, remove.DefaultStatus = http.MethodDelete, http.StatusNoContent
	huma.Register(h, remove, a.deleteAlertRule)
	mute := post(h, auth.AcknowledgeAlert, "mute-alert-rule", "/alerts/rules/{id}/mute", "Tell nobody of a rule for a while", notFound, unavailable)
	mute.DefaultStatus = http.StatusNoContent
	huma.Register(h, mute, a.muteAlertRule)
	acknowledge := post(h, auth.AcknowledgeAlert, "acknowledge-alert", "/alerts/{id}/acknowledge", "Look after an alert", notFound, unavailable)
	acknowledge.DefaultStatus = http.StatusNoContent
	huma.Register(h, acknowledge, a.acknowledgeAlert)
	if a.service() != nil {
		a.registerTestReceiver(h)
	}
}

func (a *api) registerTestReceiver(h huma.API) {
	op := postSend(h, auth.EditAlert, "test-alert-receiver", "/alerts/receivers/test", "Send a test to who can be told of alerts", notFound)
	registerSend(a, h, op, sendSteps[testReceiver, string, Preview]{
		request: func(_ context.Context, in *testReceiver) (string, error) {
			if name := in.Body.Receiver; !slices.ContainsFunc(a.commands.Receivers(), func(r receivers.Receiver) bool { return r.Name == name }) {
				return "", problem(http.StatusNotFound, "There is no such receiver.")
			}
			return in.Body.Receiver, nil
		},
		preview: func(_ context.Context, name string) (Preview, error) {
			return fromPreview(command.Preview{Summary: "Send a test to " + name + ".", Targets: []string{name}}), nil
		},
		send: a.commands.TestReceiver,
	})
}

func (a *api) listAlerts(ctx context.Context, in *listAlerts) (*response[List[Alert]], error) {
	found, next, err := a.alerts.Firings(ctx, history.AlertFilter{Open: in.Open, At: a.at, Before: in.Before, Limit: in.Limit})
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	hidden := map[int64]bool{}
	for _, r := range a.alerts.Status().Rules {
		hidden[r.ID] = a.hides && payload.Reads(r.Rule.Query)
	}
	list := onePage(found, func(f history.AlertFiring) Alert { return a.fromFiring(f, hidden[f.RuleID]) })
	if list.Total = nil; next != 0 {
		list.Next = new(strconv.FormatInt(next, 10))
	}
	return &response[List[Alert]]{Body: list}, nil
}

func (a *api) fromFiring(f history.AlertFiring, hidden bool) Alert {
	v := Alert{
		ID: Int(f.ID), RuleID: Int(f.RuleID), Rule: f.RuleName, Subject: f.Subject, Value: f.Value, Start: timeOf(f.Start), End: timeOf(f.End),
		AcknowledgedAt: timeOf(f.AcknowledgedAt), AcknowledgedBy: text(f.AcknowledgedBy),
	}
	if !a.at.IsZero() && f.End.After(a.at) {
		v.End = timeOf(time.Time{})
	}
	if !a.at.IsZero() && f.AcknowledgedAt.After(a.at) {
		v.AcknowledgedAt, v.AcknowledgedBy = timeOf(time.Time{}), nil
	}
	var e alert.Evidence
	if hidden || json.Unmarshal(f.Evidence, &e) != nil || a.hides && payload.Reads(e.Query) {
		v.Value = 0
		return v
	}
	v.Text, v.Query, v.Path = &e.Text, text(evaluate.TimedQuery(e)), text(a.prefix+evaluate.EvidencePath(e))
	return v
}

func (a *api) alertRules(ctx context.Context, _ *struct{}) (*response[List[AlertRule]], error) {
	rules, err := a.alerts.Rules(ctx)
	if err != nil {
		return nil, a.failed(ctx, err)
	}
	return &response[List[AlertRule]]{Body: onePage(rules, a.fromAlertRule)}, nil
}

func (a *api) fromAlertRule(r evaluate.Rule) AlertRule {
	v := AlertRule{
		ID: Int(r.ID), Name: r.Name, Enabled: r.Enabled, Invalid: text(r.Invalid), Receivers: append([]string{}, r.Receivers...),
		MutedUntil: timeOf(r.MutedUntil), MutedBy: text(r.MutedBy), SavedAt: timeOf(r.SavedAt), SavedBy: text(r.SavedBy),
	}
	if a.hides && payload.Reads(r.Rule.Query) {
		return v
	}
	q := r.Rule
	v.Sentence = q.Sentence()
	v.Rule = &RuleBody{
		Kind: string(q.Kind), Query: q.Query, Measure: string(q.Measure), Below: q.Below, Limit: q.Limit, Window: q.Window, Per: string(q.Per),
		Least: q.Least, For: q.For, Factor: q.Factor,
	}
	return v
}

// alertRule returns the rule of a body.
func (a *api) alertRule(b RuleBody) (alert.Rule, error) {
	if a.hides && payload.Reads(b.Query) {
		return alert.Rule{}, auth.Withheld()
	}
	return alert.Rule{
		Kind: alert.Kind(b.Kind), Query: b.Query, Measure: alert.Measure(b.Measure), Below: b.Below, Limit: b.Limit, Window: b.Window,
		Per: alert.Per(b.Per), Least: b.Least, For: b.For, Factor: b.Factor,
	}, nil
}

func (a *api) saveAlertRule(ctx context.Context, o *Origin, id int64, b AlertRuleBody) (*response[AlertRule], error) {
	rule, err := a.alertRule(b.Rule)
	if err == nil && id != 0 && a.hides {
		var saved evaluate.Rule
		if saved, err = a.alerts.Find(ctx, id); err == nil && payload.Reads(saved.Rule.Query) {
			err = auth.Withheld()
		}
	}
	if err != nil {
		return nil, a.alertProblem(ctx, err)
	}
	saved, err := a.alerts.Save(ctx, evaluate.Rule{
		AlertRule: history.AlertRule{ID: id, Name: b.Name, Enabled: b.Enabled, Receivers: b.Receivers}, Rule: rule,
	}, auth.FromContext(ctx).User)
	if err != nil {
		return nil, a.alertProblem(ctx, err)
	}
	a.recordChange(o.http, "save alert rule", saved.Name)
	return &response[AlertRule]{a.fromAlertRule(saved)}, nil
}

func (a *api) addAlertRule(ctx context.Context, in *alertRuleInput) (*response[AlertRule], error) {
	return a.saveAlertRule(ctx, &in.Origin, 0, in.Body)
}

func (a *api) changeAlertRule(ctx context.Context, in *changeAlertRule) (*response[AlertRule], error) {
	return a.saveAlertRule(ctx, &in.Origin, in.ID, in.Body)
}

func (a *api) deleteAlertRule(ctx context.Context, in *AlertPath) (*struct{}, error) {
	return a.alertChanged(ctx, in, "delete alert rule", a.alerts.Delete(ctx, in.ID))
}

func (a *api) muteAlertRule(ctx context.Context, in *muteInput) (*struct{}, error) {
	err := a.alerts.Mute(ctx, in.ID, time.Duration(in.Seconds)*time.Second, auth.FromContext(ctx).User)
	return a.alertChanged(ctx, &in.AlertPath, "mute alert rule", err)
}

func (a *api) acknowledgeAlert(ctx context.Context, in *AlertPath) (*struct{}, error) {
	return a.alertChanged(ctx, in, "acknowledge alert", a.alerts.Acknowledge(ctx, in.ID, auth.FromContext(ctx).User))
}

func (a *api) alertChanged(ctx context.Context, in *AlertPath, action string, err error) (*struct{}, error) {
	if err != nil {
		return nil, a.alertProblem(ctx, err)
	}
	a.recordChange(in.http, action, strconv.FormatInt(in.ID, 10))
	return nil, nil
}

func (a *api) alertProblem(ctx context.Context, err error) error {
	if errors.Is(err, history.ErrNotFound) {
		return problem(http.StatusNotFound, "There is no such alert or rule.")
	}
	if wrong, ok := errors.AsType[*alert.Error](err); ok {
		return problem(http.StatusBadRequest, wrong.Message, &huma.ErrorDetail{Location: "body." + wrong.Field, Message: wrong.Message})
	}
	return a.failed(ctx, err)
}

func (a *api) backtest(ctx context.Context, in *backtestInput) (*response[AlertBacktest], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	rule, err := a.alertRule(in.Body)
	if err != nil {
		return nil, a.alertProblem(ctx, err)
	}
	b, err := a.alerts.Backtest(ctx, rule)
	if err != nil {
		return nil, a.alertProblem(ctx, err)
	}
	const most = 500
	return &response[AlertBacktest]{AlertBacktest{
		Sentence: b.Rule.Sentence(), From: timeOf(b.From), LogFrom: timeOf(b.LogFrom), Times: len(b.Firings),
		Firings: mapSlice(b.Firings[max(0, len(b.Firings)-most):], func(f alert.Firing) BacktestFiring {
			return BacktestFiring{Subject: f.Subject, Text: f.Evidence.Text, Value: f.Value, Start: timeOf(f.Start), End: timeOf(f.End)}
		}),
	}}, nil
}

func (a *api) alertReceivers(context.Context, *struct{}) (*response[List[AlertReceiver]], error) {
	var list []AlertReceiver
	for _, r := range a.alerts.Receivers() {
		list = append(list, AlertReceiver{Name: r.Name, Kind: r.Kind(), Address: r.Address()})
	}
	return &response[List[AlertReceiver]]{Body: onePage(list, func(r AlertReceiver) AlertReceiver { return r })}, nil
}
