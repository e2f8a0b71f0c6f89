package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/peers"
	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/templates"
)

func settings() templates.Settings {
	const day = 24 * time.Hour
	health := nearLimit(connected())
	health.Nodes.Nodes = []history.Node{
		{Name: "one", Process: "process 812 on watch-1", Self: true, Leads: true, Connected: true, Since: at(-3600 * second), Lag: 300 * time.Millisecond},
		{Name: "three", Process: "process 77 on " + evil, Since: at(-60 * second), Lag: 40 * time.Second},
		{Name: "two", Process: "process 9 on watch-2", Leads: true, Silent: time.Hour, Since: at(-7200 * second)},
	}
	return templates.Settings{
		Redact: templates.Redaction{
			Forms: true, ByForm: 3, Recent: []string{"password", evil}, Tried: true, Text: evil, Result: evil,
			Rules: []redact.RuleStatus{{Rule: "key *password*", Default: true, Redacted: 12_345}, {Rule: evil}},
		},
		Version: "v0.1.0", Health: health, Location: "/var/lib/umbel/history.db", Size: 1 << 30,
		Unsaved: 12, Backlog: 1200, MaxTasks: 200_000, MaxText: 512 << 20,
		Peers: &peers.Status{
			State: peers.Follows, Since: at(-3600 * second), Host: "watch-1", PID: 812, ID: "aaaa", Peers: []peers.Peer{
				{ID: "bbbb", Host: "watch-2", PID: 77, Leads: true, Since: at(-7200 * second)},
				{ID: "cccc", Host: evil, PID: 1, Silent: true, Since: at(-60 * second)},
				{ID: "dddd", Since: at(-2 * second)},
			},
		},
		Plan: &templates.Plan{
			Tasks: 1_204_331, Oldest: noon - 31*24*3600*second, Today: noon - 3600*second, Used: 900 << 20, Bytes: 612 << 20,
			Rules: []templates.Rule{
				{What: "Tasks that succeeded", Keep: templates.RetentionAge(7 * day), Flag: "--keep-succeeded", Removes: history.Count{N: 100_000}},
				{What: "Failed, revoked, rejected", Keep: templates.RetentionAge(0), Flag: "--keep-failed", Removes: history.Count{N: 1, Exact: true}},
				{What: "Events that no execution shows", Keep: templates.RetentionAge(3 * day), Flag: "--keep-events", Removes: history.Count{N: 20, Exact: true}, RemovesEvents: true},
				{What: "Offline workers, since they were heard", Keep: templates.RetentionAge(7 * day), Flag: "--keep-workers"},
				{What: "All history", Keep: templates.SizeLimit(2 << 30), Flag: "--max-db-size", Removes: history.Count{N: 4000}, Estimate: true},
			},
		},
	}
}

// nearLimit is the health of Umbel while less is held in memory than is configured.
func nearLimit(h view.Health) view.Health {
	h.Memory = view.MemoryHealth{Limit: 256 << 20, MaxTasks: 81_000, MaxText: 80 << 20, Reduced: true}
	return h
}

func settingsBroken() templates.Settings {
	return templates.Settings{Location: evil, Health: broken(lost()), Error: diskFull, Peers: &peers.Status{
		State: peers.Fallback, Host: "watch-1", PID: 812, Reason: "Umbel cannot talk to others on the broker, so it asks the workers itself: " + evil + ".",
	}}
}

const diskFull = "write history: the disk is full: free some space (" + evil + ")"

// broken is the health of Umbel while the history cannot be written.
func broken(h view.Health) view.Health {
	h.Store = view.StoreHealth{
		LastError: diskFull, Since: at(-60 * second), NextAttemptAt: at(5 * second), PendingEvents: 18_204, Backpressure: true,
	}
	h.Notices = []string{"The history was damaged and set aside as " + evil + "."}
	return h
}

func historyDown(c templates.Layout) templates.Layout {
	c.Health, c.HistoryError = broken(c.Health), diskFull
	return c
}
