package web_test

import (
	"fmt"
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/state"
)

// TestBrowserFindsTheSlowestTaskType takes one click from the overview.
func TestBrowserFindsTheSlowestTaskType(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	s := newServer(t, "/ops", nil)
	for i, name := range []string{"mail.deliver", "reports.nightly", "carts.expire"} {
		for j, kind := range []state.Kind{state.TaskReceived, state.TaskSucceeded} {
			at := noon + int64(j)*1_000_000
			s.backend.backend.Apply(&state.Event{
				Kind: kind, Hostname: "celery@a", PID: 7, ID: fmt.Sprint("type-", i), Name: name, Clock: int64(1_000_000 + 2*i + j), Micros: at,
				ReceivedMicros: at, Runtime: []float64{1, 95, 2}[i], Queue: "mail",
				Present: state.FieldClock | state.FieldPID | state.FieldTimestamp | state.FieldName | state.FieldRuntime,
			})
		}
	}
	tb := newTab(t, b, s, "/")
	tb.until(live)
	tb.click(`.rail a[href$="/types"]`) // the only one
	tb.until(`document.querySelector("#types .c-name a")?.title === "reports.nightly"`)
	tb.until(live)
	tb.want(`document.querySelector("#types tr [data-label=Slowest]").innerText.replace(/\s/g, " ")`, "1 m 35 s")
	tb.click(`.types th.c-name a`)
	tb.until(`location.search === "?sort=name" && document.querySelector("#types .c-name a").title === "billing.charge"`)
	tb.click(`#types a[href$="/types/reports.nightly"]`)
	tb.until(`document.querySelector("#type-facts")?.innerText.includes("Processes needed")`)
	tb.until(live)
	tb.want(`document.querySelector("#type-workers th[scope=row]").innerText`, "celery@a")
}
