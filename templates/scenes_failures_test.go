package templates_test

import (
	"strings"

	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

// trend has one failure in the first hour of a day and more in the last ones.
func trend() []int64 {
	trend := make([]int64, 24)
	trend[0], trend[22], trend[23] = 1, 40, 12
	return trend
}

func failing() []templates.Failure {
	return []templates.Failure{
		{
			ID: "0dd7dc58725190cd", Name: "billing.tasks.charge", Type: "ConnectionError", Message: "cannot reach <address> (attempt <n>)",
			Place: "gateway.py in post", Example: "ConnectionError('cannot reach 10.0.3.7:8080 (attempt 3)')", TaskID: retried().ID,
			Count: templates.Count{N: 10_000}, LastHour: 412, First: noon - 90_000*second, Last: noon, Trend: trend(),
		},
		{
			ID: "2222222222222222", Name: "mail.deliver", Type: "ValueError", Count: templates.Count{N: 2, Exact: true}, LastHour: 2,
			First: noon - 60*second, Last: noon, Trend: make([]int64, 24), ResolvedAt: noon - 30*second, CameBack: true,
		},
		{
			ID: "1111111111111111", Name: evil, Type: evil, Message: evil, Place: evil, Example: evil, TaskID: evil,
			Count: templates.Count{N: 1, Exact: true}, First: noon, Last: noon,
		},
	}
}

func failureList() templates.Failures {
	resolved := failing()[0]
	resolved.ID, resolved.Name, resolved.ResolvedAt = "3333333333333333", "", noon+second
	return templates.Failures{
		Groups: append(failing(), resolved), Show: "all", Open: 3, Resolved: 1, Self: "/ops/failures?show=all",
		Newest: "/ops/failures?show=all", Older: "/ops/failures?cursor=abc&show=all",
	}
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
		Failure: failing()[0], Exception: new("ConnectionError('cannot reach 10.0.3.7:8080 (attempt 3)')"), Traceback: &traceback,
		Tasks: []state.Task{retried()}, JustResolved: true, Self: "/ops/failures/0dd7dc58725190cd",
	}
}

func failureHostile() templates.FailureGroup {
	return templates.FailureGroup{
		Failure: failing()[2], Exception: new(evil), Traceback: new(evil + strings.Repeat("\n  File \"/x.py\", line 1, in "+evil, 2_000)),
		Tasks: []state.Task{hostile()}, Self: "/ops/failures/1111111111111111",
	}
}
