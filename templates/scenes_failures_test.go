package templates_test

import (
	"strings"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/templates"
)

// trend has one failure in the first hour of a day and more in the last ones.
func trend() []int64 {
	trend := make([]int64, 24)
	trend[0], trend[22], trend[23] = 1, 40, 12
	return trend
}

func failing() []history.FailureGroup {
	id := func(s string) fingerprint.ID {
		id, _ := fingerprint.ParseID(s)
		return id
	}
	return []history.FailureGroup{
		{
			ID: id("0dd7dc58725190cd"), Name: "billing.tasks.charge", Fingerprint: fingerprint.Fingerprint{
				Type: "ConnectionError", Message: "cannot reach <address> (attempt <n>)", Place: "gateway.py in post",
			},
			Example: "ConnectionError('cannot reach 10.0.3.7:8080 (attempt 3)')", TaskID: retried().ID,
			Note: "Gateway team knows <7>.\nTicket GW-12", NotedBy: "ann", NotedAt: at(-600 * second), Assignee: "bob",
			Count: history.Count{N: 10_000}, LastHour: 412, FirstAt: at(-90_000 * second), LastAt: at(0), Trend: trend(),
		},
		{
			ID: id("2222222222222222"), Name: "mail.deliver", Fingerprint: fingerprint.Fingerprint{Type: "ValueError"},
			Count: history.Count{N: 2, Exact: true}, LastHour: 2,
			FirstAt: at(-60 * second), LastAt: at(0), Trend: make([]int64, 24), ResolvedAt: at(-30 * second),
		},
		{
			ID: id("1111111111111111"), Name: evil, Fingerprint: fingerprint.Fingerprint{Type: evil, Message: evil, Place: evil},
			Note: evil, NotedBy: evil, NotedAt: at(0), Assignee: evil,
			Example: evil, TaskID: evil, Count: history.Count{N: 1, Exact: true}, FirstAt: at(0), LastAt: at(0),
		},
	}
}

func failureList() templates.Failures {
	resolved := failing()[0]
	resolved.ID, _ = fingerprint.ParseID("3333333333333333")
	resolved.Name, resolved.ResolvedAt = "", at(second)
	return templates.Failures{
		Groups: append(failing(), resolved), Show: "all", Open: 3, Resolved: 1, Self: "/ops/failures?show=all",
		Newest: "/ops/failures?show=all", Older: "/ops/failures?cursor=abc&show=all",
	}
}

func failuresInSpan() templates.Failures {
	v := failureList()
	span := someTime()
	v.Span, v.SpanQuery = span.Chosen, strings.TrimPrefix(span.Carry, "?")
	v.Groups = v.Groups[:1]
	v.Groups[0].Within = 53
	return v
}

func failureInSpan() templates.FailureGroup {
	v := failureGroup()
	span := someTime()
	v.Span, v.SpanQuery = span.Chosen, strings.TrimPrefix(span.Carry, "?")
	v.Group.Within = 53
	return v
}

func failureGroup() templates.FailureGroup {
	traceback := strings.Join([]string{
		"Traceback (most recent call last):",
		`  File "/srv/shop/venv/lib/python3.12/site-packages/celery/app/trace.py", line 564, in trace_task`,
		"    R = retval = fun(*args, **kwargs)",
		`  File "/srv/shop/billing/gateway.py", line 131, in post`,
		"    return session.post(url)",
		`  File "/srv/shop/venv/lib/python3.12/site-packages/requests/sessions.py", line 637, in post`,
		`  File "/srv/shop/venv/lib/python3.12/site-packages/requests/adapters.py", line 688, in send`,
		"ConnectionError: cannot reach 10.0.3.7:8080 (attempt 3)", "",
	}, "\n")
	return templates.FailureGroup{
		Group: failing()[0], Exception: new("ConnectionError('cannot reach 10.0.3.7:8080 (attempt 3)')"), Traceback: &traceback,
		Tasks: []state.Task{retried()}, JustResolved: true, Self: "/ops/failures/0dd7dc58725190cd", Split: failureSplit(),
	}
}

func failureSplit() tasktype.Split {
	share := func(field, value string, n, of, others int, apart bool, q string) tasktype.Share {
		return tasktype.Share{Trait: tasktype.Trait{Field: field, Value: value, Selected: n, SelectedOf: of, Others: others, OthersOf: 100}, Apart: apart, Query: q}
	}
	unknown := share("queue", "slow", 20, 20, 0, false, "failure:0dd7dc58725190cd queue:slow")
	unknown.OthersOf = 0
	return tasktype.Split{
		Tasks: 20, Others: 100, Rest: 2,
		Workers: []tasktype.Share{
			share("worker", "celery@w3", 18, 20, 4, true, "failure:0dd7dc58725190cd worker:celery@w3"),
			share("worker", "celery@w1", 2, 20, 96, false, "failure:0dd7dc58725190cd worker:celery@w1"),
		},
		Values: []tasktype.Share{
			share("kwargs.region", `"eu"`, 20, 20, 31, true, `failure:0dd7dc58725190cd kwargs:"'region': 'eu'"`),
			share("args[0].id", "7", 12, 19, 0, true, ""), unknown,
		},
	}
}

func failureHostile() templates.FailureGroup {
	return templates.FailureGroup{
		Group: failing()[2], Exception: new(evil), Traceback: new(evil + strings.Repeat("\n  File \"/x.py\", line 1, in "+evil, 2_000)),
		Tasks: []state.Task{hostile()}, Self: "/ops/failures/1111111111111111",
		Split: tasktype.Split{Tasks: 1, Whole: true, Workers: []tasktype.Share{{Trait: tasktype.Trait{Field: "worker", Value: evil, Selected: 1, SelectedOf: 1}, Query: evil}}},
	}
}
