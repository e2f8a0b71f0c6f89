package templates_test

import (
	"github.com/umbelhq/umbel/internal/about"
	"github.com/umbelhq/umbel/monitor/flow"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func aboutPage() templates.About {
	health := connected()
	health.Events, health.Watermark = 2_043_310, state.Watermark{Micros: noon, Bounded: true, Within: 8 * second}
	return templates.About{
		Version: "v0.1.0", Health: health, Stored: history.Health{Location: "/var/lib/umbel/umbel.db"},
		Flow: flow.Verdict{Level: flow.Flowing, Reasons: []flow.Reason{{Text: "6 workers are online.", Path: "/workers"}}},
		Build: about.Build{
			Commit: "0123456789abcdef0123456789abcdef01234567", Modified: true, Go: "1.26.0", Platform: "linux/amd64",
			Parts: []about.Part{{Name: "Go", Version: "1.26.0", Licence: "BSD-3-Clause"}, {Name: evil, Version: evil}},
		},
	}
}

// aboutInTrouble is the page of a program that has nothing to say but what is wrong.
func aboutInTrouble() templates.About {
	health := lost()
	health.Store.LastError, health.Rejected = "disk I/O error", map[string]uint64{"malformed": 12}
	health.Watermark = state.Watermark{Micros: noon, Behind: true, Worker: "celery@a"}
	return templates.About{Health: health}
}

// settingUp is the overview after the first task, of clients that do not send task-sent.
func settingUp() templates.Overview {
	return templates.Overview{
		Health: connected(), FailuresReadable: true, Workers: knownWorkers()[:1],
		Counts: state.Counts{Tasks: 1, ByState: map[state.State]int{state.Started: 1}},
	}
}

func aboutScenes() map[string]scene {
	touring := layout(templates.SectionOverview, "/")
	touring.Demo = true
	toured := touring
	toured.TourDone = true
	demo := templates.Overview{
		Health: connected(), FailuresReadable: true, Counts: state.Counts{Tasks: 1, Evicted: 1},
		Tour: []templates.Link{{Text: "See the failing group", Href: "/ops/failures/0dd7dc58725190cd"}, {Text: "Search for customer " + evil, Href: "/ops/tasks?q=1"}},
	}
	return map[string]scene{
		"about":           {layout("", "/about"), aboutPage()},
		"about-toured":    {toured, aboutPage()},
		"about-trouble":   {layout("", "/about"), aboutInTrouble()},
		"overview-setup":  {layout(templates.SectionOverview, "/"), settingUp()},
		"overview-tour":   {touring, demo},
		"overview-toured": {toured, demo},
	}
}
