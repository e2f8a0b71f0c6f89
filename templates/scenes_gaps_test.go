package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// gapScenes are those of brokers that keep no events.
func gapScenes() map[string]scene {
	gone := lost()
	gone.Broker.Loss.Ephemeral = true
	quiet := connected()
	quiet.Broker.Loss.Ephemeral = true
	gaps := quiet
	gaps.Broker.URL = "redis://redis:6379/0"
	gaps.Broker.Loss = view.Loss{
		Ephemeral: true, Outages: 2, OutageTime: 34_500 * time.Millisecond, LastOutage: at(-60 * second), MissedTasks: 12, Dropped: 1,
	}
	gaps.MissingStarted = 3
	gaps.Watermark = state.Watermark{Micros: at(-4 * second).UnixMicro(), Bounded: true, Worker: "celery@a", Within: 8e6, Workers: 2}
	behind := quiet
	behind.Watermark = state.Watermark{
		Micros: at(-40 * second).UnixMicro(), Worker: "celery@b", Behind: true, Within: 6e6, Workers: 2, Uncounted: 11, UncountedNames: []string{"celery@c", "celery@d"},
	}
	all := make(map[string]scene)
	for name, health := range map[string]view.Health{
		"overview-forgets": quiet, "overview-gaps": gaps, "overview-behind": behind, "overview-forgets-down": gone,
	} {
		c := layout(templates.SectionOverview, "/")
		c.Health = health
		all[name] = scene{c, templates.Overview{Health: health}}
	}
	w := knownWorkers()
	w[0].ClockOffset = &state.ClockOffset{Low: 1_800_000, High: 2_300_000}
	all["overview-offset"] = scene{layout(templates.SectionOverview, "/"), templates.Overview{Health: connected(), Workers: w}}
	return all
}
