package web_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/state"
)

// plotted is what the chart draws, as its library has it, and what the table says: columns of seconds and values.
const (
	plotted   = `JSON.stringify(document.querySelector("umbel-chart").plot?.data)`
	tabulated = `JSON.stringify((() => {
		const rows = [...document.querySelectorAll("#chart-rows tr")].reverse();
		const columns = document.querySelectorAll("#chart-columns th").length;
		const value = (row, i) => i ? row.children[i].dataset.value ?? null : row.dataset.at;
		return [...Array(columns).keys()].map((i) => rows.map((row) => value(row, i) === null ? null : Number(value(row, i))));
	})())`
	inked = `(() => { // pixels of the canvas that are not empty
		const canvas = document.querySelector("umbel-chart")?.shadowRoot?.querySelector("canvas");
		if (!canvas?.width) return 0;
		return canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.filter((v, i) => i % 4 === 3 && v > 0).length;
	})()`
)

func TestChartsInTheBrowser(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"chart equals the table": chartEqualsTheTable, "chart is live": chartIsLive, "chart is brushed": chartIsBrushed,
		"a deploy is seen": deployIsSeen,
		"chart is hidden":  chartIsHidden, "a chart begins with its first step": chartBeginsAtOnce,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// at applies an event of a task at a second after noon. The page shows an hour after noon.
func (m *changingBackend) at(kind state.Kind, id string, second int) {
	m.happen(kind, id, second)
}

// lately adds tasks that have ended in the last minutes.
func lately(s *server) {
	for i := range 40 {
		second := 3500 - 30*i
		id := fmt.Sprint("late-", i)
		for j, kind := range []state.Kind{state.TaskReceived, state.TaskStarted, state.TaskSucceeded} {
			s.backend.at(kind, id, second+j)
		}
	}
}

func chartEqualsTheTable(t *testing.T, b context.Context) {
	s := newServer(t, "/ops", nil)
	lately(s)
	for _, path := range []string{"/", "/tasks", "/tasks?chart=24h,name", "/tasks?chart=run", "/tasks?q=args%3A~1", "/?chart=7d"} {
		t.Run(path, func(t *testing.T) {
			tb := newTab(t, b, s, path)
			tb.until(inked + " > 1000")
			tb.until(plotted + " === " + tabulated)
			tb.want(`document.querySelectorAll("#chart-rows tr").length > 7`, true)
			tb.want(`document.querySelector("umbel-chart").getBoundingClientRect().width <= innerWidth`, true)
		})
	}
}

func chartIsLive(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	lately(s)
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.until(inked + " > 1000")
	tb.eval(`void (window.before = ` + plotted + `)`)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for i := 0; tb.eval(plotted+` === window.before`) == true && i < 100; i++ {
		s.backend.at(state.TaskReceived, fmt.Sprint("now-", i), 3590)
		<-tick.C
	}
	tb.until(plotted + ` !== window.before`)
	tb.until(plotted + " === " + tabulated)
}

func chartIsBrushed(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	lately(s)
	tb := newTab(t, b, s, "/tasks?q=name%3Abilling.charge&chart=name")
	tb.until(inked + " > 1000")
	tb.eval(`void (() => {
		const plot = document.querySelector("umbel-chart").plot;
		plot.setSelect({ left: 100, top: 0, width: 200, height: 50 });
	})()`)
	const param = `new URLSearchParams(location.search).get`
	tb.until(`/^2026-.*T..:..:00Z$/.test(` + param + `("since") ?? "") && ` + param + `("until") > ` + param + `("since")`)
	tb.until(inked + " > 1000")
	tb.want(`document.querySelectorAll("#chart-rows tr").length < 40`, true)
	tb.want(param+`("q") + `+param+`("chart")`, "name:billing.chargename")
	tb.want(`[...document.querySelectorAll(".rail a")].filter((a) => a.search === "?" + new URLSearchParams([["since", `+param+`("since")], ["until", `+param+`("until")]])).length`, 4.0)
	listed := `document.querySelectorAll("#tasks > tr").length`
	few := tb.eval(listed).(float64)
	tb.eval(`document.querySelector("#chart-head .reset").click()`)
	tb.until(param + `("since") === null && document.querySelector("#chart-head .reset") === null`)
	tb.until(`document.querySelectorAll("#chart-rows tr").length > 40`)
	tb.want(`[...document.querySelectorAll(".rail a")].some((a) => a.search)`, false)
	tb.want(param+`("q") + `+param+`("chart")`, "name:billing.chargename")
	tb.want(fmt.Sprintf("%s >= %v", listed, few), true)
}

// A deploy is a line with a label over each chart, a line of text below it and in its table, and what groups of failures say.
func deployIsSeen(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	lately(s)
	s.set(t, history.Mark{At: time.UnixMicro(noon).Add(50 * time.Minute).UTC(), Text: "v2.3.1", Link: "https://ci.example.com/17"})
	s.set(t, history.Mark{At: time.UnixMicro(noon).Add(-time.Hour).UTC(), Text: "v2.3.0"})
	const line = `[...document.querySelector("umbel-chart").shadowRoot.querySelectorAll(".mark.deploy")]`
	tb := newTab(t, b, s, "/")
	tb.until(live)
	tb.until(line + `.length === 1`)
	tb.want(line+`[0].ariaLabel`, "12:50 v2.3.1")
	tb.eval(`void (() => { const [line] = ` + line + `; line.focus(); window.label = getComputedStyle(line.firstChild).display })()`)
	tb.want(`document.querySelector("#chart-marks a").href`, "https://ci.example.com/17")
	tb.want(`[...document.querySelectorAll("#chart-rows tr")].filter((row) => row.textContent.includes("v2.3.1")).length`, 1.0)
	s.set(t, history.Mark{At: time.UnixMicro(noon).Add(55 * time.Minute).UTC(), Text: "v2.3.2"})
	s.backend.at(state.TaskReceived, "after the deploy", 3590) // has the page updated
	tb.until(line + `.length === 2`)
	for _, path := range []string{"/tasks", "/workers/celery@a?tab=history"} {
		tb = newTab(t, b, s, path)
		tb.until(line + `.length === 2`)
	}
	tb = newTab(t, b, s, "/failures")
	tb.until(`document.querySelector("#failures .after") !== null`)
	tb.want(`/^\s*first seen\s+\S.* after v2\.3\.0\s*$/.test(document.querySelector("#failures .after").textContent)`, true)
	tb.eval(`document.querySelector("#failures a.open").click()`)
	tb.until(`document.querySelector("#seen-after")?.textContent.includes("after")`)
	tb.want(`/First seen\s+\S.*after v2\.3\.0/.test(document.querySelector("#seen-after").textContent)`, true)
}

// set adds a mark as a CI job does.
func (s *server) set(t *testing.T, m history.Mark) {
	t.Helper()
	if _, err := s.backend.History().AddMark(t.Context(), m); err != nil {
		t.Fatalf("add mark: %v", err)
	}
}

// A chart of days has something to show in its first hour, and says that this hour goes on.
func chartBeginsAtOnce(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	lately(s)
	tb := newTab(t, b, s, "/tasks?chart=30d")
	tb.until(inked + " > 1000")
	tb.until(plotted + " === " + tabulated)
	tb.want(`[4, 8].includes(document.querySelectorAll("#chart-rows td[data-value]").length)`, true) // of one step, or two after the full hour
	tb.want(`document.querySelector("#chart-rows tr").textContent.includes("so far")`, true)
	tb.want(`document.querySelectorAll("#chart-rows [data-unfinished]").length`, 1.0)
	tb.until(`(() => { // it is drawn paler than its color, unless it is that after the full hour, in which nothing happened
		if (document.querySelectorAll("#chart-rows td[data-value]").length === 8) return true;
		const { plot } = document.querySelector("umbel-chart");
		const copy = Object.assign(document.createElement("canvas"), { width: plot.ctx.canvas.width, height: plot.ctx.canvas.height });
		const ink = copy.getContext("2d", { willReadFrequently: true });
		ink.drawImage(plot.ctx.canvas, 0, 0);
		const { left, width } = plot.bbox;
		const zero = Math.round(plot.valToPos(0, "y", true));
		const [r, g, b] = ink.getImageData(left + width - 4, zero - 4, 1, 1).data;
		ink.fillStyle = plot.series[plot.series.findIndex((s) => s.label === "succeeded")].fill();
		ink.fillRect(0, 0, 1, 1);
		const full = ink.getImageData(0, 0, 1, 1).data;
		return r + g + b > full[0] + full[1] + full[2] && r + g + b < 3 * 255;
	})()`)
}

func chartIsHidden(t *testing.T, b context.Context) {
	s := newServer(t, "", nil)
	tb := newTab(t, b, s, "/tasks")
	tb.until(`document.querySelector("umbel-chart") !== null`)
	tb.eval(`document.querySelector("#chart-head .choices > a").click()`)
	tb.until(`document.querySelector("umbel-chart") === null && location.search === "?chart=off"`)
	tb.eval(`document.querySelector("#chart-head .choices > a").click()`)
	tb.until(inked + " > 1000")
}

// Whatever the width, nothing is drawn over what hides the chart of the list of tasks.
func TestBrowserChartOfTasksFitsItsControls(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	s := newServer(t, "/ops", nil)
	lately(s)
	tb := newTab(t, b, s, "/tasks")
	for width := int64(800); width <= 1400; width += 100 {
		tb.width(width)
		tb.until(`innerWidth === ` + strconv.FormatInt(width, 10))
		if got := tb.eval(`(() => {
			const hide = document.querySelector("#chart-head .choices > a"), r = hide.getBoundingClientRect();
			return [r.left + 1, r.right - 1].every((x) => document.elementFromPoint(x, r.top + r.height / 2) === hide);
		})()`); got != true {
			t.Errorf("%d wide: the control that hides the chart is covered or outside", width)
		}
	}
}
