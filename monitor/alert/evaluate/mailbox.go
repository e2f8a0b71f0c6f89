package evaluate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/alert"
	"github.com/umbelhq/umbel/monitor/alert/receivers"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
)

// maxAlerts is how many alerts one notification names.
const maxAlerts = 20

// mailbox gathers what each receiver is told of one record: one notification, however much begins or ends with it.
type mailbox struct {
	at      int64
	url     string
	cluster string // its name, where there are several
	told    map[string]*receivers.Notification
}

func newMailbox(at int64, url, cluster string) *mailbox {
	return &mailbox{at: at, url: url, cluster: cluster, told: map[string]*receivers.Notification{}}
}

// add tells the receivers of a rule of a firing, if anybody is told.
func (m *mailbox) add(rule *Rule, f history.AlertFiring, tells bool) {
	if !tells {
		return
	}
	a := m.alert(f)
	for _, name := range rule.Receivers {
		n := m.told[name]
		if n == nil {
			n = &receivers.Notification{At: time.UnixMicro(m.at).UTC(), Cluster: m.cluster, Link: m.link("/alerts")}
			m.told[name] = n
		}
		if len(n.Alerts) < maxAlerts {
			n.Alerts = append(n.Alerts, a)
		} else {
			n.More++
		}
	}
}

func (m *mailbox) alert(f history.AlertFiring) receivers.Alert {
	var e alert.Evidence
	_ = json.Unmarshal(f.Evidence, &e) // its text is empty then
	a := receivers.Alert{
		Status: "firing", Rule: f.RuleName, RuleID: f.RuleID, Subject: f.Subject, Text: e.Text, Value: f.Value, Start: f.Start.UTC(),
		Query: e.Query, Link: m.link(EvidencePath(e)),
	}
	if !f.End.IsZero() {
		end := f.End.UTC()
		a.Status, a.End = "resolved", &end
	}
	return a
}

func (m *mailbox) link(path string) string {
	if m.url == "" {
		return ""
	}
	return m.url + path
}

// EvidencePath is the path, below Umbel's prefix, of the page of what an alert saw.
func EvidencePath(e alert.Evidence) string {
	switch {
	case e.TaskID != "":
		return "/tasks/" + url.PathEscape(e.TaskID)
	case e.Worker != "":
		return "/workers/" + url.PathEscape(e.Worker)
	case e.Queue != "":
		return "/queues/" + url.PathEscape(e.Queue)
	}
	return "/tasks?" + url.Values{"q": {TimedQuery(e)}}.Encode()
}

// TimedQuery is the query of evidence, for the tasks that changed in its time.
func TimedQuery(e alert.Evidence) string {
	text := e.Query
	if e.From.IsZero() || e.To.IsZero() {
		return text
	}
	if text != "" {
		text += " "
	}
	return text + "updated:" + e.From.UTC().Format(time.RFC3339) + ".." + e.To.UTC().Format(time.RFC3339)
}

// commands returns the notifications as commands, by receiver. Receivers that are not configured anymore are left out.
func (m *mailbox) commands(known []receivers.Receiver) ([]history.Command, error) {
	var all []history.Command
	for _, name := range slices.Sorted(maps.Keys(m.told)) {
		if !slices.ContainsFunc(known, func(r receivers.Receiver) bool { return r.Name == name }) {
			continue
		}
		n := m.told[name]
		if n.Summary = summary(n); n.Cluster != "" {
			n.Summary = n.Cluster + ": " + n.Summary
		}
		sum := sha256.Sum256([]byte(strconv.FormatInt(m.at, 10) + " " + name))
		n.ID = hex.EncodeToString(sum[:16])
		c, err := command.Notification(name, *n)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// summary says in one line what a notification is about.
func summary(n *receivers.Notification) string {
	firing, resolved := 0, 0
	for _, a := range n.Alerts {
		if a.Status == "firing" {
			firing++
		} else {
			resolved++
		}
	}
	first := n.Alerts[0].Rule
	if s := n.Alerts[0].Subject; s != "" {
		first += " (" + s + ")"
	}
	switch {
	case firing == 1 && resolved+n.More == 0:
		return "Firing: " + first
	case resolved == 1 && firing+n.More == 0:
		return "Resolved: " + first
	}
	text := fmt.Sprintf("%d firing, %d resolved: %s", firing, resolved, first)
	if n.More > 0 {
		text += fmt.Sprintf(" and %d more", n.More)
	}
	return text
}
