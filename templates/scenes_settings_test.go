package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/templates"
)

func settings() templates.Settings {
	const day = 24 * time.Hour
	return templates.Settings{
		Version: "v0.1.0", Broker: connected(), Location: "/var/lib/umbel/history.db", Size: 1 << 30,
		Unsaved: 12, Backlog: 1200, MaxTasks: 200_000, MaxText: 512 << 20,
		Plan: &templates.Plan{
			Tasks: 1_204_331, Oldest: noon - 31*24*3600*second, Today: noon - 3600*second, Used: 900 << 20, Bytes: 612 << 20,
			Rules: []templates.Rule{
				{What: "Tasks that succeeded", Keep: templates.Age(7 * day), Flag: "--keep-succeeded", Gone: templates.Count{N: 100_000}},
				{What: "Failed, revoked, rejected", Keep: templates.Age(0), Flag: "--keep-failed", Gone: templates.Count{N: 1, Exact: true}},
				{What: "Events that no execution shows", Keep: templates.Age(3 * day), Flag: "--keep-events", Gone: templates.Count{N: 20, Exact: true}, Thins: true},
				{What: "Offline workers, since they were heard", Keep: templates.Age(7 * day), Flag: "--keep-workers"},
				{What: "All history", Keep: templates.MostSize(2 << 30), Flag: "--max-db-size", Gone: templates.Count{N: 4000}, About: true},
			},
		},
	}
}

func settingsBroken() templates.Settings {
	return templates.Settings{Location: evil, Broker: lost(), Trouble: broken()}
}

// broken is a history that cannot be written.
func broken() templates.Trouble {
	return templates.Trouble{
		Error: "write history: the disk is full: free some space (" + evil + ")", Since: noon - 60*second, NextTryAt: noon + 5*second,
		Waiting: 18_204, Full: true, Notices: []string{"The history was damaged and set aside as " + evil + "."},
	}
}

func troubled(c templates.Chrome) templates.Chrome {
	c.Trouble = broken()
	return c
}
