package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/templates"
)

func alertScenes() map[string]scene {
	shown := layout(templates.SectionAlerts, "/alerts")
	shown.HasAlerts, shown.IsAdmin, shown.Alerts.Firing = true, true, 1
	viewer := shown
	viewer.ReadOnly, viewer.IsAdmin, viewer.Alerts.Firing = true, false, 0
	return map[string]scene{
		"alerts":           {shown, alertList()},
		"alerts-none":      {dark(shown), templates.Alerts{}},
		"alerts-elsewhere": {viewer, templates.Alerts{Elsewhere: true, Error: "the disk is full", Newest: "/ops/alerts", Rules: alertList().Rules}},
		"alerts-hostile": {shown, templates.Alerts{
			Error:  evil,
			Firing: []templates.AlertFiring{{ID: 1, Rule: evil, Subject: evil, Text: evil, Href: "/ops/tasks?q=x", Start: noon, AcknowledgedAt: noon, AcknowledgedBy: evil}},
			Rules:  []templates.AlertRule{{ID: 1, Name: evil, Sentence: evil, Enabled: true, Receivers: []string{evil}, MutedUntil: noon, MutedBy: evil, Edit: "/ops/act/alert?id=1"}},
		}},
		"alert-preview": {shown, templates.Form{
			Section: templates.SectionAlerts, Title: "New rule", Path: "/act/alert", Button: "Save",
			Preview: &templates.Preview{Preview: command.Preview{Summary: "Failures within 5 min above 5."}, Alert: alertBacktest()},
		}},
	}
}

func alertList() templates.Alerts {
	return templates.Alerts{
		Firing: []templates.AlertFiring{
			{ID: 3, Rule: "Many failures", Subject: "billing.charge", Text: "Share of failures 40 % of name billing.charge in 15 min, above 20 %.", Href: "/ops/tasks?q=name%3Abilling.charge", Start: noon},
			{ID: 2, Rule: "Stuck queue", Subject: "mail", Text: "12 messages wait in queue mail, and nothing is taken from it.", Href: "/ops/queues/mail", Start: noon - 600*second, Muted: true},
			{ID: 1, Rule: "Late", Text: "You may not see it.", Start: noon - 700*second, AcknowledgedAt: noon, AcknowledgedBy: "ann"},
		},
		Rules: []templates.AlertRule{
			{ID: 1, Name: "Many failures", Sentence: "Share of failures per name within 15 min above 20 %, of 10 runs or more.", Enabled: true, Firing: 1, Receivers: []string{"ops", "chat"}, Edit: "/ops/act/alert?id=1"},
			{ID: 2, Name: "Stuck queue", Sentence: "More than 0 messages wait in a queue, and nothing is taken from it for 10 min.", Enabled: true, MutedUntil: noon + 3600*second, MutedBy: "ann", Edit: "/ops/act/alert?id=2"},
			{ID: 3, Name: "Old", Invalid: "a rule is of another kind", Enabled: true, Edit: "/ops/act/alert?id=3"},
			{ID: 4, Name: "Off", Sentence: "Retries above 3.", Edit: "/ops/act/alert?id=4"},
		},
		Suggestions: []templates.AlertSuggestion{{Name: "Deaf worker", Why: "A worker lost its connection.", Sentence: "It receives nothing.", Href: "/ops/act/alert?kind=deaf_worker"}},
		Past:        []templates.AlertFiring{{ID: 1, Rule: "Overdue run", Subject: "3f2a", Text: "billing.charge has run for 1h.", Href: "/ops/tasks/3f2a", Start: noon - 7200*second, End: noon - 3600*second, AcknowledgedBy: "ann"}},
		Older:       "/ops/alerts?before=1", Receivers: 2,
	}
}

func alertBacktest() *templates.AlertBacktest {
	start := time.UnixMicro(noon).UTC()
	b := &templates.AlertBacktest{URL: evaluate.EvidencePath, Backtest: evaluate.Backtest{Records: 5_000, LogFrom: start.Add(-50 * time.Hour)}}
	for i := range 22 {
		f := alert.Firing{Subject: "a", Start: start.Add(time.Duration(i) * time.Hour), Evidence: alert.Evidence{Text: "7 failures in 5 min, above 5.", Query: "state:failure"}}
		if i < 21 {
			f.End = f.Start.Add(10 * time.Minute)
		}
		b.Firings = append(b.Firings, f)
	}
	return b
}
