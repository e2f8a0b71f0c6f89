package templates_test

import (
	"fmt"

	"github.com/umbelhq/umbel/monitor/difference"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func compareScenes() map[string]scene {
	page := func(v templates.Comparison) scene { return scene{layout(templates.SectionTasks, ""), v} }
	lone := comparison()
	lone.With, lone.Similar = "", templates.Similar{About: similar().About, Name: "mail.send", Runs: similar().Runs[:1], Pick: true}
	missing := comparison()
	missing.With, missing.Missing = evil, true
	return map[string]scene{
		"compare":         page(comparison()),
		"compare-none":    page(lone),
		"compare-missing": page(missing),
		"compare-hostile": page(comparisonHostile()),
		"task-similar":    {layout(templates.SectionTasks, "/tasks/"+failed().ID), templates.Task{Task: failed(), Similar: similar()}},
		"task-alone":      {layout(templates.SectionTasks, "/tasks/"+failed().ID), templates.Task{Task: failed(), Similar: templates.Similar{About: templates.RunOf(new(failed())), Name: "mail.send"}}},
	}
}

// failed is succeeded, had it failed after a second.
func failed() state.Task {
	t := succeeded()
	t.ID, t.State, t.Result, t.Exception = "9a1e6a52-0000-4000-8000-00000000000a", state.Failure, nil, new("ValueError('no such user')")
	t.SucceededAt, t.FailedAt, t.UpdatedAt, t.RuntimeSeconds = 0, noon+3*second, noon+3*second, nil
	t.Executions[0].State, t.Executions[0].SucceededAt, t.Executions[0].FailedAt = state.Failure, 0, t.FailedAt
	t.Executions[0].RuntimeSeconds, t.Executions[0].Result, t.Executions[0].Exception = nil, nil, t.Exception
	return t
}

// similar are twelve runs, of which one has no known time.
func similar() templates.Similar {
	v := templates.Similar{About: templates.RunOf(new(failed())), Name: "mail.send"}
	states := []state.State{state.Success, state.Success, state.Failure, state.Revoked}
	for i := range 12 {
		r := templates.SimilarRun{
			ID: fmt.Sprintf("run-%02d", i), State: states[i%4], Ran: new(.05 * float64(i+1)), Worker: new("celery@a"), UpdatedAt: noon + int64(i)*second,
		}
		if i == 7 {
			r.Ran = nil
		}
		v.Runs = append(v.Runs, r)
	}
	return v
}

func comparison() templates.Comparison {
	args := difference.Reprs("args", "({'user': {'id': 7, 'name': 'Ann'}}, 'welcome back')", "({'user': {'id': 8, 'name': 'Ann'}}, 'welcome home', 1)")
	kwargs := difference.Reprs("kwargs", "{'lang': 'en'}", "{'lang': 'en'}")
	v := templates.Comparison{
		First: templates.ComparedTask{Task: failed()}, Second: templates.ComparedTask{Task: succeeded()}, With: succeeded().ID,
		Similar: similar(), Args: &args, Kwargs: &kwargs,
	}
	v.Similar.Pick = true
	return v
}

func comparisonHostile() templates.Comparison {
	args := difference.Reprs(evil, evil, evil+evil)
	return templates.Comparison{
		First: templates.ComparedTask{Task: hostile()}, Second: templates.ComparedTask{Task: state.Task{ID: evil, State: evil}}, With: evil, Args: &args,
		Similar: templates.Similar{Name: evil, Runs: []templates.SimilarRun{{ID: evil, State: evil, Ran: new(-1.0)}, {ID: "x", State: evil, Ran: new(1e300)}}},
	}
}
