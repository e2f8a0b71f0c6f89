package templates_test

import (
	"strconv"
	"time"

	"github.com/umbelhq/umbel/monitor/schedules"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func scheduleScenes() map[string]scene {
	shown := layout(templates.SectionSchedules, "/schedules")
	every := func(name, args string, period int64, states ...state.State) schedules.Schedule {
		s := schedules.Schedule{Name: name, Args: &args, Kwargs: new("{}"), Client: "gen7@beat", Period: period, Spread: period / 50}
		for i, st := range states {
			r := schedules.Run{ID: name + strconv.Itoa(i), State: st, At: noon - int64(len(states)-i)*period, Lost: st == state.Received}
			if st == state.Success {
				r.RuntimeSeconds = new(1 + float64(i))
			}
			s.Runs = append(s.Runs, r)
		}
		return s
	}
	ok, bad, lost := state.Success, state.Failure, state.Received
	late := every("reports.nightly", "('berlin',)", 600*second, ok, ok, bad, lost, ok, ok)
	late.Missed, late.Overlaps = 2, 1
	odd := every(evil, evil, 60*second, bad, bad, bad, bad, bad, bad)
	odd.Client, odd.Args = "", nil
	return map[string]scene{
		"schedules": {shown, templates.Schedules{Now: time.UnixMicro(noon + 120*second), Result: schedules.Result{
			Cut: true, Schedules: []schedules.Schedule{odd, every("carts.expire", "()", 120*second, ok, ok, ok, ok, ok, bad), late},
		}, Senders: []templates.Sender{{Name: "celerybeat@c", Beat: true}, {Name: "gen12@a", Schedules: 2, Behind: 1, LastAt: noon, Beat: true}, {Name: evil, Schedules: 1}}}},
		"schedules-ended": {dark(shown), templates.Schedules{Now: time.UnixMicro(noon + 30*86400*second), Result: schedules.Result{Schedules: []schedules.Schedule{late}}}},
		"schedules-none":  {shown, templates.Schedules{Now: time.UnixMicro(noon)}},
	}
}
