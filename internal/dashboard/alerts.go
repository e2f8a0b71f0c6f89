package dashboard

import (
	"github.com/umbelhq/umbel/monitor/alert/evaluate"
	"github.com/umbelhq/umbel/monitor/view"
)

// newAlerts prepares to judge alerts.
func (d *Dashboard) newAlerts(o Options, reader *view.Reader) (err error) {
	alerts := evaluate.Options{
		Store: d.history, Take: d.takeRecord, Queues: d.commands.Queues.Peek, Count: reader.Count,
		Receivers: o.Alerts.Receivers, URL: o.Alerts.URL, ReadOnly: o.ReadOnly, Interval: o.AlertInterval, Logger: o.Logger,
	}
	if o.Member != nil {
		alerts.Cluster = o.Member.Name
	}
	if d.peers != nil {
		alerts.Others, alerts.Outbox = d.peers, d.history
	}
	if d.commands.Relay != nil {
		alerts.Wake, alerts.Sent = d.commands.Relay.Wake, d.commands.Relay.Changed
	}
	d.alerts, err = evaluate.New(alerts)
	return err
}
