package web_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
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
		"chart is hidden": chartIsHidden, "a chart begins with its first step": chartBeginsAtOnce,
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
	tb.until(`/^\d+-\d+,name$/.test(new URLSearchParams(location.search).get("chart") ?? "")`)
	tb.until(inked + " > 1000")
	tb.want(`document.querySelectorAll("#chart-rows tr").length < 40`, true)
	tb.want(`new URLSearchParams(location.search).get("q")`, "name:billing.charge")
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
	tb.until(`(() => {
		const { plot } = document.querySelector("umbel-chart");
		const copy = Object.assign(document.createElement("canvas"), { width: plot.ctx.canvas.width, height: plot.ctx.canvas.height });
		const ink = copy.getContext("2d", { willReadFrequently: true });
		ink.drawImage(plot.ctx.canvas, 0, 0);
		const at = (x, y) => [...ink.getImageData(x, y, 1, 1).data].join();
		const { left, top, width, height } = plot.bbox;
		const [x, y] = [0, 1].map((i) => Math.round(plot.valToPos(plot.data[i].at(-1), i ? "y" : "x", true)));
		const shade = at(left + width - 2, top + height - 2);
		return at(x - 1, y) !== shade && shade !== at(left + 9, top + 2); // a point in the step, and the step itself
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
