package templates_test

import (
	"time"

	"github.com/umbelhq/umbel/monitor/deploys"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/templates"
)

// chart is a chart of counts, of which one step is unknown.
func chart() templates.Chart {
	minute := 60 * second
	return templates.Chart{
		Title: "Throughput", Brush: "/ops/tasks", Step: time.Minute,
		Ranges: []templates.Choice{{Text: "1h", Href: "/ops/tasks", Current: true}, {Text: "24h", Href: "/ops/tasks?chart=24h"}},
		Shows:  []templates.Choice{{Text: "count", Href: "/ops/tasks", Current: true}, {Text: "run", Href: "/ops/tasks?chart=run"}},
		Groups: []templates.Choice{{Text: "state", Href: "/ops/tasks", Current: true}},
		Toggle: templates.Link{Text: "Hide", Href: "/ops/tasks?chart=off"},
		Columns: []templates.ChartColumn{
			{Name: "succeeded", Color: "--success", Draw: templates.Stacked}, {Name: "<failed>", Color: "--failure", Draw: templates.Apart},
		},
		Marks: []deploys.Mark{
			{Mark: history.Mark{ID: "1", At: time.UnixMicro(noon + 7*second).UTC(), Text: "<v2.3.1>", Service: "shop", Link: "https://ci.example.com/17", By: "ci"}, Kind: deploys.Deploy},
			{Mark: history.Mark{At: time.UnixMicro(noon + minute).UTC(), Text: "2 workers restarted"}, Kind: deploys.Restart, Workers: []string{"celery@w1", "celery@w2"}},
		},
		Rows: []templates.ChartRow{
			{At: noon + minute, Cells: []*float64{new(12_340.0), new(0.0)}, Unfinished: true},
			{At: noon, Cells: []*float64{nil, nil}},
		},
	}
}

// chartOfTimes is a chart of percentiles, of days, from some of the tasks.
func chartOfTimes() templates.Chart {
	v := chart()
	v.Title, v.Seconds, v.Step, v.Note = "Run time", true, 24*time.Hour, "from the tasks that match"
	v.Marks, v.Reset = nil, &templates.ChartSpan{From: noon, To: noon + 20*60*second, Href: "/ops/tasks?chart=run"}
	v.Columns = []templates.ChartColumn{{Name: "p50", Color: "--success"}, {Name: "p99", Color: "--failure"}}
	v.Rows = []templates.ChartRow{{At: noon, Cells: []*float64{new(0.25), new(91.0)}}}
	return v
}

func chartOff() templates.Chart {
	return templates.Chart{Title: "Throughput", Off: true, Toggle: templates.Link{Text: "Show", Href: "/ops/tasks"}}
}
