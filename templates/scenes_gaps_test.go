package templates_test

import "github.com/umbelhq/umbel/templates"

// gapScenes are those of brokers that keep no events.
func gapScenes() map[string]scene {
	gone := lost()
	gone.Forgets = true
	quiet := connected()
	quiet.Forgets = true
	gaps := quiet
	gaps.URL = "redis://redis:6379/0"
	gaps.Gaps, gaps.GapSeconds, gaps.LastGapAt, gaps.UnseenTasks, gaps.Dropped = 2, 34.5, noon-60*second, 12, 1
	all := make(map[string]scene)
	for name, broker := range map[string]templates.Broker{
		"overview-forgets": quiet, "overview-gaps": gaps, "overview-forgets-down": gone,
	} {
		c := layout(templates.SectionOverview, "/")
		c.Broker = broker
		all[name] = scene{c, templates.Overview{Ingest: templates.Ingest{Broker: broker}}}
	}
	return all
}
