package main_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// complete fails the test unless d knows the tasks of bodies, each succeeded after one execution.
func complete(tb testing.TB, d *dashboard, bodies [][]byte) {
	tb.Helper()
	missing := map[string]bool{}
	for _, body := range bodies {
		missing[eventOf(tb, body).UUID] = true
	}
	for _, got := range d.tasks(tb) {
		if got.State != "SUCCESS" || len(got.Executions) != 1 || got.Redelivered || got.ReceivedAt == nil || got.StartedAt == nil {
			tb.Errorf("task is %+v, want it complete and run once", got)
		}
		delete(missing, got.ID)
	}
	if len(missing) > 0 {
		tb.Errorf("%d tasks are missing", len(missing))
	}
}

func TestEndToEndEventsPublishedWhileAwayArriveLater(t *testing.T) {
	t.Parallel()
	broker := testenv.VirtualHost(t)
	b := newBus(t, broker)
	serve := func() *dashboard {
		d := start(t, nil, "serve", "--broker-url", broker, "--queue", "umbel-away")
		d.connected(t)
		return d
	}
	if status := serve().end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("stopped with status %d, want 0", status)
	}
	bodies := simulate.Typical(2400, 1)
	b.publishAll(t, bodies)
	d := serve()
	d.folded(t, len(bodies))
	complete(t, d, bodies)
}

func TestBrokerAwayAtStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // a port that refuses
	d := start(t, nil, "serve", "--broker-url", "amqp://user:secret@"+l.Addr().String()+"/")
	var o overview
	eventually(t, timeout, func() error {
		if o = d.overview(t); o.Health.Broker.LastError == nil {
			return errors.New("no error yet")
		}
		return nil
	})
	away := o.Health.Broker
	if away.Connected || away.NextTryAt == nil || away.Attempts == 0 || !strings.Contains(*away.LastError, "refused") {
		t.Errorf("broker is %+v, want it refused and a next try", away)
	}
	if status, body := d.fetch(t, "readyz"); status != http.StatusOK {
		t.Errorf("readyz answered %d %s", status, body)
	}
	_, html := d.fetch(t, "")
	for _, want := range []string{"Broker unavailable.", "Next attempt at", "refused"} {
		if !strings.Contains(string(html), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	text, _ := d.lines.read()
	_, api := d.fetch(t, "api/v1/overview")
	if strings.Contains(text+string(html)+string(api), "secret") {
		t.Error("the password is on the page, in the API or in the log")
	}
}

// TestEndToEndBrokerLost cuts the connection in the middle of a stream of events, again and again.
func TestEndToEndBrokerLost(t *testing.T) {
	t.Parallel()
	broker := testenv.VirtualHost(t)
	b := newBus(t, broker)
	p := newProxy(t, broker)
	d := start(t, nil, "serve", "--broker-url", p.broker, "--queue", "umbel-lost")
	d.connected(t)
	page := openTab(t, testbrowser.Open(t), d.url)

	bodies := simulate.Typical(24_000, 1)
	const cuts = 3
	for n := range cuts {
		part := bodies[n*len(bodies)/cuts : (n+1)*len(bodies)/cuts]
		for i, body := range part {
			if err := b.publish(t.Context(), routingKey(t, body), body); err != nil {
				t.Fatalf("publish: %v", err)
			}
			if i == len(part)/2 {
				eventually(t, timeout, func() error {
					if d.overview(t).Health.Broker.LastEventAt == nil {
						return errors.New("no event has arrived")
					}
					return nil
				})
				p.cut()
			}
		}
		page.until(t, `!document.querySelector("#banner").hidden && document.querySelector("#banner").textContent.includes("Broker unavailable")`)
		if away := d.overview(t).Health.Broker; away.Connected || away.LastError == nil || away.NextTryAt == nil || away.LastEventAt == nil {
			t.Errorf("broker is %+v, want it lost, a next try and the time of the last event", away)
		}
		if status, body := d.fetch(t, "readyz"); status != http.StatusOK {
			t.Errorf("readyz answered %d %s", status, body)
		}
		p.restore(t)
		d.connected(t)
		page.until(t, `document.querySelector("#banner").hidden`)
	}
	eventually(t, timeout, func() error {
		if o := d.overview(t); o.Counts.ByState["SUCCESS"] < len(bodies)/3 {
			return fmt.Errorf("%d of %d tasks in SUCCESS", o.Counts.ByState["SUCCESS"], len(bodies)/3)
		}
		return nil
	})
	complete(t, d, bodies)
}
