package templates_test

import (
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/templates"
)

// flowScenes are the Overview with each verdict on whether work flows.
func flowScenes() map[string]scene {
	path := func(kind flow.Kind, level flow.Level, text, path string) flow.Reason {
		return flow.Reason{Kind: kind, Level: level, Text: text, Path: path}
	}
	online := path(flow.Workers, flow.Flowing, "3 workers are online.", "/workers")
	failing := path(flow.Failing, flow.Degraded, "9.2 % of the tasks that ended in the last 10 minutes failed; 1 % is usual.", "/tasks?q=finished%3A-10m..+state%3Afailure")
	all := map[string]scene{}
	for name, reasons := range map[string][]flow.Reason{
		"overview-flowing":  {online, path(flow.Backlog, flow.Flowing, "12 messages wait in queues, which drain within 4 s.", "/queues")},
		"overview-degraded": {failing, online},
		"overview-stuck":    {path(flow.Deaf, flow.Stuck, "1,200 messages wait in <mail>, and nobody consumes from it.", "/queues/%3Cmail%3E"), failing, online},
		"overview-unknown":  {path(flow.Listening, flow.Unknown, "Umbel has been listening for 12 s, and needs 30 s.", "/settings"), online},
	} {
		v := flow.Verdict{Level: reasons[0].Level, Reasons: reasons}
		all[name] = scene{layout(templates.SectionOverview, "/"), templates.Overview{Flow: v, Health: connected(), Counts: overview().Counts}}
	}
	badged := layout(templates.SectionOverview, "/")
	badged.URLs.Title, badged.URLs.Color = "<production>", "red"
	all["overview-badge"] = scene{badged, templates.Overview{Health: connected(), Counts: overview().Counts}}
	return all
}
