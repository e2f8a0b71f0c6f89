package historytest

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
)

func alerts() map[string]func(storeTest) {
	return map[string]func(storeTest){
		"Alert rules are kept":                              storeTest.alertRulesKept,
		"Alert rules are bounded":                           storeTest.alertRulesBounded,
		"Alert rules that are gone end their firings":       storeTest.alertRulesDeleted,
		"Updates of alerts are written whole or not":        storeTest.alertUpdates,
		"The log of alerts is read in order, and bounded":   storeTest.alertRecords,
		"Firings come newest first, page by page":           storeTest.alertFirings,
		"Firings are known as of an instant":                storeTest.alertFiringsThen,
		"Whoever acknowledges an alert first is remembered": storeTest.alertAcknowledged,
	}
}

// alertStart is when the tests of alerts begin.
func alertStart() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }

func (c storeTest) alertRules() []history.AlertRule {
	c.Helper()
	rules, err := c.AlertRules(c.Context())
	if err != nil {
		c.Fatalf("alert rules: %v", err)
	}
	for i := range rules {
		for _, at := range []*time.Time{&rules[i].MutedUntil, &rules[i].SavedAt} {
			if !at.IsZero() {
				*at = at.UTC()
			}
		}
	}
	return rules
}

func (c storeTest) saveAlertRule(name string) history.AlertRule {
	c.Helper()
	r, err := c.SaveAlertRule(c.Context(), history.AlertRule{
		Name: name, Enabled: true, Definition: []byte(`{}`), Receivers: []string{"ops"}, SavedAt: alertStart(), SavedBy: "ann",
	})
	if err != nil || r.ID == 0 {
		c.Fatalf("save rule %q: %+v, %v", name, r, err)
	}
	return r
}

func (c storeTest) updateAlerts(u history.AlertUpdate) {
	c.Helper()
	if err := c.UpdateAlerts(c.Context(), u); err != nil {
		c.Fatalf("update alerts: %v", err)
	}
}

// firings returns all firings, newest first, read by pages.
func (c storeTest) firings(f history.AlertFilter) []history.AlertFiring {
	c.Helper()
	var all []history.AlertFiring
	for {
		list, next, err := c.AlertFirings(c.Context(), f)
		if err != nil {
			c.Fatalf("firings: %v", err)
		}
		all = append(all, list...)
		if f.Before = next; next == 0 {
			return all
		}
	}
}

func (c storeTest) alertRulesKept() {
	b := c.saveAlertRule("b")
	a := c.saveAlertRule("a")
	if err := c.MuteAlertRule(c.Context(), a.ID, alertStart().Add(time.Hour), "eve"); err != nil {
		c.Fatalf("mute: %v", err)
	}
	b.Enabled, b.Definition, b.Receivers, b.SavedBy = false, []byte(`{"a":1}`), nil, "bob"
	if _, err := c.SaveAlertRule(c.Context(), b); err != nil {
		c.Fatalf("replace rule: %v", err)
	}
	a.Enabled = false // which does not unmute it
	if _, err := c.SaveAlertRule(c.Context(), a); err != nil {
		c.Fatalf("replace rule: %v", err)
	}
	a.MutedUntil, a.MutedBy = alertStart().Add(time.Hour), "eve"
	c.reopen()
	if diff := cmp.Diff([]history.AlertRule{a, b}, c.alertRules()); diff != "" {
		c.Errorf("rules (-want +got):\n%s", diff)
	}
	if err := c.MuteAlertRule(c.Context(), a.ID, time.Time{}, "bob"); err != nil || c.alertRules()[0].Muted(alertStart()) {
		c.Errorf("the rule is muted still: %v", err)
	}
}

func (c storeTest) alertRulesBounded() {
	var last history.AlertRule
	for i := range history.MaxAlertRules {
		last = c.saveAlertRule(strconv.Itoa(i))
	}
	if _, err := c.SaveAlertRule(c.Context(), history.AlertRule{Name: "more"}); !errors.Is(err, history.ErrTooManyAlertRules) {
		c.Errorf("save one more: %v, want %v", err, history.ErrTooManyAlertRules)
	}
	last.Name = "changed"
	if _, err := c.SaveAlertRule(c.Context(), last); err != nil {
		c.Errorf("replace one of the most rules: %v", err)
	}
}

func (c storeTest) alertRulesDeleted() {
	r := c.saveAlertRule("a")
	c.updateAlerts(history.AlertUpdate{At: alertStart(), Began: []history.AlertFiring{{RuleID: r.ID, RuleName: "a", Start: alertStart()}}})
	if err := c.DeleteAlertRule(c.Context(), r.ID, alertStart().Add(time.Minute)); err != nil {
		c.Fatalf("delete: %v", err)
	}
	if open := c.firings(history.AlertFilter{Open: true, Limit: 10}); len(open) > 0 {
		c.Errorf("firings of a rule that is gone: %+v", open)
	}
	if all := c.firings(history.AlertFilter{RuleID: r.ID, Limit: 10}); len(all) != 1 || !all[0].End.Equal(alertStart().Add(time.Minute)) {
		c.Errorf("firings = %+v, want one that ended with its rule", all)
	}
	c.updateAlerts(history.AlertUpdate{At: alertStart(), Began: []history.AlertFiring{{RuleID: r.ID, Start: alertStart()}}}) // by whoever has not seen it go
	if open := c.firings(history.AlertFilter{Open: true, Limit: 10}); len(open) > 0 {
		c.Errorf("firings of a rule that is gone: %+v", open)
	}
	for what, err := range map[string]error{
		"delete":      c.DeleteAlertRule(c.Context(), r.ID, alertStart()),
		"mute":        c.MuteAlertRule(c.Context(), r.ID, alertStart(), ""),
		"acknowledge": c.AcknowledgeAlert(c.Context(), 999, alertStart(), ""),
	} {
		if !errors.Is(err, history.ErrNotFound) {
			c.Errorf("%s: %v, want %v", what, err, history.ErrNotFound)
		}
	}
	if _, err := c.SaveAlertRule(c.Context(), r); !errors.Is(err, history.ErrNotFound) {
		c.Errorf("save: %v, want %v", err, history.ErrNotFound)
	}
}

func (c storeTest) alertUpdates() {
	r := c.saveAlertRule("a")
	firing := history.AlertFiring{RuleID: r.ID, RuleName: "a", Subject: "x", Start: alertStart(), Value: 1.5, Evidence: []byte(`{}`)}
	command := history.Command{Kind: "notification", Group: "notification ops", Target: "ops", Payload: []byte(`{}`)}
	c.updateAlerts(history.AlertUpdate{At: alertStart(), Record: []byte("1"), Began: []history.AlertFiring{firing}, Commands: []history.Command{command}})
	// The same firing again is an error, and nothing of that update is written.
	again := history.AlertUpdate{At: alertStart().Add(time.Minute), Record: []byte("2"), Began: []history.AlertFiring{firing}, Commands: []history.Command{command}}
	if err := c.UpdateAlerts(c.Context(), again); err == nil {
		c.Error("a subject fires twice at once")
	}
	if got := c.alertLog(alertStart()); !slices.Equal(got, []string{"1"}) {
		c.Errorf("records = %q, want 1", got)
	}
	commands, _, err := c.Commands(c.Context(), history.CommandFilter{Limit: 10})
	if err != nil || len(commands) != 1 || commands[0].State != history.CommandPending || commands[0].RequestID != commands[0].ID {
		c.Errorf("commands = %+v, %v, want one pending", commands, err)
	}
	c.reopen()
	open := c.firings(history.AlertFilter{Open: true, Limit: 10})
	if len(open) != 1 {
		c.Fatalf("firings = %+v, want one", open)
	}
	id := open[0].ID
	c.updateAlerts(history.AlertUpdate{At: alertStart().Add(time.Minute), Notified: []int64{id}})
	c.updateAlerts(history.AlertUpdate{At: alertStart().Add(2 * time.Minute), Ended: []int64{id}, Began: []history.AlertFiring{firing}})
	all := c.firings(history.AlertFilter{Limit: 10})
	if len(all) != 2 || !all[1].Notified || all[0].Notified || !all[1].End.Equal(alertStart().Add(2*time.Minute)) || !all[0].End.IsZero() {
		c.Errorf("firings = %+v, want one that ended and one that goes on", all)
	}
}

// records returns the log from a time on.
func (c storeTest) alertLog(from time.Time) (got []string) {
	c.Helper()
	err := c.AlertRecords(c.Context(), from, func(record []byte) error {
		got = append(got, string(record))
		return nil
	})
	if err != nil {
		c.Fatalf("records: %v", err)
	}
	return got
}

func (c storeTest) alertRecords() {
	var want []string
	for i := range 1_203 {
		want = append(want, strconv.Itoa(i))
		c.updateAlerts(history.AlertUpdate{At: alertStart().Add(time.Duration(i) * time.Minute), Record: []byte(want[i])})
	}
	if got := c.alertLog(time.Time{}); !slices.Equal(got, want) {
		c.Errorf("%d records, want %d in order", len(got), len(want))
	}
	if got := c.alertLog(alertStart().Add(1_200 * time.Minute)); !slices.Equal(got, want[1_200:]) {
		c.Errorf("records = %q, want the last three", got)
	}
	later := alertStart().Add(history.AlertRecordRetention + 1_201*time.Minute)
	c.updateAlerts(history.AlertUpdate{At: later, Record: []byte("late")})
	if got := c.alertLog(time.Time{}); !slices.Equal(got, []string{"1201", "1202", "late"}) {
		c.Errorf("%d records are left: %.100q", len(got), got)
	}
}

func (c storeTest) alertFirings() {
	r := c.saveAlertRule("a")
	var u history.AlertUpdate
	for i := range 7 {
		u.Began = append(u.Began, history.AlertFiring{RuleID: r.ID, RuleName: "a", Subject: strconv.Itoa(i), Start: alertStart(), Evidence: []byte(`{}`)})
	}
	u.At = alertStart()
	c.updateAlerts(u)
	var got []string
	for _, f := range c.firings(history.AlertFilter{RuleID: r.ID, Limit: 3}) {
		got = append(got, f.Subject)
	}
	if want := []string{"6", "5", "4", "3", "2", "1", "0"}; !slices.Equal(got, want) {
		c.Errorf("firings = %v, want %v", got, want)
	}
	if other := c.firings(history.AlertFilter{RuleID: r.ID + 1, Limit: 3}); len(other) > 0 {
		c.Errorf("firings of another rule = %+v", other)
	}
	var ids []int64
	for _, f := range c.firings(history.AlertFilter{Limit: 10}) {
		ids = append(ids, f.ID)
	}
	c.updateAlerts(history.AlertUpdate{At: alertStart(), Ended: ids[1:]})
	c.updateAlerts(history.AlertUpdate{At: alertStart().Add(history.AlertFiringRetention + time.Minute)})
	if left := c.firings(history.AlertFilter{Limit: 10}); len(left) != 1 || left[0].Subject != "6" {
		c.Errorf("firings after their time = %+v, want the one that goes on", left)
	}
}

func (c storeTest) alertFiringsThen() {
	r := c.saveAlertRule("a")
	minute := func(n int) time.Time { return alertStart().Add(time.Duration(n) * time.Minute) }
	began := func(n int) []history.AlertFiring {
		return []history.AlertFiring{{RuleID: r.ID, Subject: strconv.Itoa(n), Start: minute(n)}}
	}
	c.updateAlerts(history.AlertUpdate{At: minute(1), Began: began(1)})
	c.updateAlerts(history.AlertUpdate{At: minute(2), Began: began(2)})
	c.updateAlerts(history.AlertUpdate{At: minute(3), Ended: []int64{c.firings(history.AlertFilter{Limit: 10})[1].ID}})
	for n, want := range []string{"open  ended ", "open 1 ended ", "open 21 ended ", "open 2 ended 1", "open 2 ended 1"} {
		subjects := func(f history.AlertFilter) (list []string) {
			f.At, f.Limit = minute(n), 10
			for _, v := range c.firings(f) {
				list = append(list, v.Subject)
			}
			return list
		}
		got := "open " + strings.Join(subjects(history.AlertFilter{Open: true}), "") + " ended " + strings.Join(subjects(history.AlertFilter{Ended: true}), "")
		if got != want {
			c.Errorf("at minute %d: %s, want %s", n, got, want)
		}
	}
}

func (c storeTest) alertAcknowledged() {
	r := c.saveAlertRule("a")
	c.updateAlerts(history.AlertUpdate{At: alertStart(), Began: []history.AlertFiring{{RuleID: r.ID, Start: alertStart()}}})
	id := c.firings(history.AlertFilter{Limit: 1})[0].ID
	for i, who := range []string{"ann", "bob"} {
		if err := c.AcknowledgeAlert(c.Context(), id, alertStart().Add(time.Duration(i)*time.Minute), who); err != nil {
			c.Fatalf("acknowledge: %v", err)
		}
	}
	if f := c.firings(history.AlertFilter{Limit: 1})[0]; f.AcknowledgedBy != "ann" || !f.AcknowledgedAt.Equal(alertStart()) {
		c.Errorf("acknowledged by %s at %v, want ann, first", f.AcknowledgedBy, f.AcknowledgedAt)
	}
}
