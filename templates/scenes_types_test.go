package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/monitor/rollup"
	"github.com/umbelhq/umbel/monitor/tasktype"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/templates"
)

func typeScenes() map[string]scene {
	return map[string]scene{
		"types":            {layout(templates.SectionTypes, "/types"), typeList()},
		"types-span":       {layout(templates.SectionTypes, "/types"), typesInSpan()},
		"types-past":       {past(layout(templates.SectionTypes, "/types")), typesThen()},
		"type-past":        {past(layout(templates.SectionTypes, "/types/billing.tasks.charge")), typeThen()},
		"type-span":        {layout(templates.SectionTypes, "/types/billing.tasks.charge"), typeInSpan()},
		"types-none":       {layout(templates.SectionTypes, "/types"), templates.Types{Counted: lastDay(), Table: typeTable(), Sorts: typeList().Sorts}},
		"type":             {layout(templates.SectionTypes, "/types/billing.tasks.charge"), typeDetail()},
		"type-none":        {layout(templates.SectionTypes, "/types/x"), templates.TaskType{Name: evil, Counted: lastDay(), Detail: tasktype.Detail{Table: typeTable()}}},
		"types-unreadable": {layout(templates.SectionTypes, "/types"), templates.Types{Counted: lastDay(), Unreadable: true, Sorts: typeList().Sorts}},
	}
}

func lastDay() templates.Counted { return templates.Counted{Last: "24h"} }

// someTime is a span that was chosen.
func someTime() templates.Counted {
	from := at(0).Truncate(time.Hour).UTC()
	return templates.Counted{
		Last: "24h", From: from.UnixMicro(), To: from.Add(time.Hour).UnixMicro(), Carry: "?since=2026-11-20T10%3A00%3A00Z&until=2026-11-20T11%3A00%3A00Z",
		Chosen: &templates.ChartSpan{From: from.UnixMicro(), To: from.Add(time.Hour).UnixMicro(), Href: "/ops/types"},
	}
}

// dayBefore is the day before an instant.
func dayBefore() templates.Counted {
	until := at(0).Truncate(10 * time.Minute).UTC()
	return templates.Counted{Last: "24h", Then: true, From: until.Add(-24 * time.Hour).UnixMicro(), To: until.UnixMicro()}
}

func typesThen() templates.Types {
	v := typeList()
	v.Counted, v.Rows = dayBefore(), v.Rows[:1]
	return v
}

func typeThen() templates.TaskType {
	v := typeDetail()
	v.Counted = dayBefore()
	return v
}

func typesInSpan() templates.Types {
	v := typeList()
	v.Counted, v.Ranges, v.Rows = someTime(), v.Ranges[:1], v.Rows[:1]
	return v
}

func typeInSpan() templates.TaskType {
	v := typeDetail()
	v.Counted, v.Ranges = someTime(), v.Ranges[:1]
	return v
}

// durations are as many times as given, in ms.
func durations(ms ...int64) rollup.Histogram {
	var h rollup.Histogram
	for _, m := range ms {
		h.Add(1000 * m)
	}
	return h
}

func typeTable() tasktype.Table {
	from := at(0).Truncate(time.Hour).UTC()
	return tasktype.Table{From: from, To: from.Add(4 * time.Hour), Step: time.Hour, Observed: 150 * time.Minute}
}

func typeList() templates.Types {
	sorts := map[string]templates.Sort{}
	for _, key := range tasktype.SortKeys() {
		sorts[key] = templates.Sort{Href: "/ops/types?sort=-" + key}
	}
	sorts["wait_p99"] = templates.Sort{Href: "/ops/types?sort=wait_p99", Order: "descending"}
	trend := []tasktype.Step{{}, {Observed: true, Received: 9, Succeeded: 8, Failed: 1}, {Observed: true}, {Observed: true, Received: 3, Succeeded: 3}}
	slower := tasktype.Usual{Median: 400_000, MAD: 20_000, Hours: 100}
	faster := tasktype.Usual{Median: 4_000_000, MAD: 20_000, Hours: 168}
	usual := tasktype.Usual{Median: 1_210_000, MAD: 200_000, Hours: 6}
	charge := tasktype.Row{Type: tasktype.Type{
		Name: "billing.tasks.charge", Received: 12, Succeeded: 11, Failed: 1, Retried: 2, Trend: trend, Wait: durations(1, 20, 3000),
		Run: durations(1200, 1300, 1200, 9000), Workers: tasktype.Places{Names: []string{"celery@a", "celery@b"}}, Queues: tasktype.Places{Names: []string{"billing"}},
	}, LastFailedAt: at(0).UnixMicro()}
	charge.Drift = slower.Against(charge.Run)
	quick, same := charge, charge
	quick.Name, quick.Drift, quick.Queues.More = "mail.deliver", faster.Against(charge.Run), true
	same.Name, same.Failed, same.LastFailedAt, same.Drift = evil, 0, 0, usual.Against(charge.Run)
	return templates.Types{
		Table: typeTable(), Counted: lastDay(), Sorts: sorts, Found: 5, All: 10_000, Find: "a", First: "/ops/types", Next: "/ops/types?after=x",
		Ranges: []templates.Choice{{Text: "1h", Href: "/ops/types?last=1h"}, {Text: "24h", Href: "/ops/types", Current: true}},
		Rows: []tasktype.Row{
			charge, quick, same,
			{Type: tasktype.Type{Trend: trend, Received: 1}},
			{Type: tasktype.Type{Name: rollup.Other, Failed: 2, Trend: trend}},
		},
	}
}

func typeDetail() templates.TaskType {
	r := typeList().Rows[0]
	slow := retried()
	slow.State, slow.RuntimeSeconds = state.Success, new(9.0)
	return templates.TaskType{
		Name: r.Name, Counted: lastDay(), Drift: r.Drift, Ranges: typeList().Ranges, Slots: 16, SlotsOf: 1,
		Detail: tasktype.Detail{
			Table: typeTable(), Type: r.Type, Runs: []rollup.Histogram{nil, durations(1200, 1300, 9000), nil, durations(1200)},
			Workers: []tasktype.Part{{Name: "celery@a", Succeeded: 3, Failed: 1, Run: r.Run}, {Name: evil, Retried: 2}, {Name: rollup.Other, Failed: 1}},
			Queues:  []tasktype.Part{{Succeeded: 3, Run: r.Run}},
		},
		Sample: tasktype.Sample{
			Tasks: 1000, Slowest: []state.Task{slow},
			Failures: tasktype.Comparison{Selected: 30, Others: 900, Traits: []tasktype.Trait{
				{Field: "kwargs.customer", Value: `"acme"`, Selected: 28, SelectedOf: 30, Others: 4, OthersOf: 800},
				{Field: "args[0]", Value: evil, Selected: 9, SelectedOf: 30, OthersOf: 800},
			}},
			Slow: tasktype.Comparison{Selected: 5, Others: 95},
		},
	}
}
