package web_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/monitor/broker/inproc"
	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
	"github.com/umbelhq/umbel/monitor/locks"
	"github.com/umbelhq/umbel/monitor/view"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// What a person sees of commands and queues in a real browser.
func TestBrowserOutbox(t *testing.T) {
	t.Parallel()
	b := testbrowser.Open(t)
	tests := map[string]func(*testing.T, context.Context){
		"order goes from pending to answered": requestGoesLive,
		"dead letters are sent again":         deadLettersAreSentAgain,
		"queue is looked into and purged":     queueIsPurged,
		"broker that is away is said":         unavailableBrokerIsShown,
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, b)
		})
	}
}

// newIdleWorkers returns a server whose workers reply once work is called.
func newIdleWorkers(t *testing.T) (s *server, c *workers, work func()) {
	t.Helper()
	db, err := sqlite.Open(context.Background(), sqlite.Options{Dir: sqlite.Memory})
	if err != nil {
		t.Fatal(err)
	}
	b := newChangingBackend(t, state.Options{MaxTasks: maxTasks})
	c = &workers{broker: inproc.New(inproc.Options{}), store: db, answers: map[string]map[string]any{
		"celery@a": answers("celery", "mail"), "celery@b/1%20ü": answers("celery"),
	}}
	c.broker.Declare("mail")
	var watcher *locks.Watcher
	c.locks, watcher = watchLocks(t, b)
	c.commands, err = command.New(command.Options{Client: controlClient(t, c.broker), Outbox: db, Tasks: b, Locks: watcher})
	if err != nil {
		t.Fatal(err)
	}
	detach := c.broker.Listen(c.receive)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		detach()
		_ = db.Close()
	})
	s = &server{t: t, backend: b, prefix: "/ops", address: "127.0.0.1:0", options: func(o *web.Options) {
		o.Backend, o.Commands = withStore{b, db}, c.commands
	}}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s, c, func() { running.Go(func() { _ = c.commands.Run(ctx) }) }
}

// withStore is a changingBackend with a store.
type withStore struct {
	*changingBackend
	db *sqlite.DB
}

func (w withStore) History() view.History { return w.db }

func requestGoesLive(t *testing.T, b context.Context) {
	s, c, work := newIdleWorkers(t)
	_, err := c.commands.Control(t.Context(), command.Caller{Actor: "ada"}, command.ControlRequest{Method: "pool_grow", Arguments: map[string]any{"n": 1}})
	if err != nil {
		t.Fatal(err)
	}
	tb := newTab(t, b, s, "/outbox/1")
	tb.until(live)
	tb.want(`document.querySelector("#request-head .pill").innerText.trim()`, "Pending")
	list := newTab(t, b, s, "/outbox")
	list.until(live)
	list.want(`document.querySelector("#outbox-tiles .figure").innerText`, "1")
	tb.eval(`void (window.unloaded = false)`)
	work()
	tb.until(`document.querySelector(".progress").innerText === "Replies from 2 of 2"`)
	tb.until(`document.querySelector("#request-head .pill").innerText.trim() === "Done"`)
	tb.want(`[...document.querySelectorAll(".answers b")].map((e) => e.innerText).sort().join(" ")`, "celery@a celery@b/1%20ü")
	tb.want(`document.querySelectorAll(".verdict.yes").length`, 2.0)
	tb.want(`window.unloaded`, false)
	list.until(`document.querySelector("#outbox-tiles .figure").innerText === "0"`)
	list.until(`document.querySelector("#r-1 .c-state").innerText.trim() === "Done"`)
}

func deadLettersAreSentAgain(t *testing.T, b context.Context) {
	s, c, _ := newIdleWorkers(t)
	p := &outboxWeb{db: c.store}
	ids := p.enqueue(t, 3)
	p.become(t, history.CommandDead, ids...)
	tb := newTab(t, b, s, "/")
	tb.until(`document.querySelector("#dead").innerText === "3"`)
	tb.until(`document.querySelector("#outbox-alert").innerText.includes("3 commands could not be sent.")`)
	tb.press("gx")
	tb.until(`location.pathname === "/ops/outbox"`)
	tb.until(live)
	tb.click(`#outbox-shown a[href$="state=dead"]`)
	tb.until(`document.querySelectorAll("#commands tr").length === 3`)
	tb.click(`#commands tr:nth-child(2) input`)
	tb.until(`document.querySelector("#dead-letters output").value === "1 selected"`)
	tb.click(`#dead-letters button[value=requeue]`)
	tb.until(`document.querySelector(".summary")?.innerText.startsWith("Send the dead letter again")`)
	tb.click(".act button")
	tb.until(`location.pathname === "/ops/outbox/1"`)
	tb.until(`document.querySelector("#dead").innerText === "2"`)
	tb.want(`document.querySelector(".progress").innerText`, "2 of 3 finished, 1 pending, 2 failed for good")
}

func queueIsPurged(t *testing.T, b context.Context) {
	s, c, work := newIdleWorkers(t)
	work()
	eventually(t, "the line is open", func() bool { return c.commands.Client.Connected() })
	tb := newTab(t, b, s, "/")
	tb.until(live)
	tb.press("gq")
	tb.until(`document.getElementById("q-mail") !== null`)
	tb.click("#q-mail a")
	tb.until(`location.pathname === "/ops/queues/mail"`)
	tb.until(`document.querySelector("#queue-facts .consumers")?.textContent.includes("celery@a") ?? false`)
	tb.click(`#queue-head a.danger`)
	tb.until(`document.querySelector("#field-confirm") !== null`)
	tb.click("#field-confirm")
	tb.press("mail")
	tb.click(".act button.danger")
	tb.until(`location.pathname.startsWith("/ops/outbox/")`)
	tb.until(`document.querySelector("#request-head .pill").innerText.trim() === "Done"`)
}

func unavailableBrokerIsShown(t *testing.T, b context.Context) {
	s, c, work := newIdleWorkers(t)
	away := errors.New("dial tcp 127.0.0.1:5672: connection refused")
	c.broker.Refuse(away)
	work()
	for range 3 {
		request := command.ControlRequest{Method: "pool_grow", Arguments: map[string]any{"n": 1}, Workers: []string{"celery@a"}}
		if _, err := c.commands.Control(t.Context(), command.Caller{}, request); err != nil {
			t.Fatal(err)
		}
	}
	tb := newTab(t, b, s, "/tasks")
	tb.until(live)
	tb.until(`document.querySelector("#outbox-alert").innerText.includes("Commands cannot be sent.")`)
	tb.want(`document.querySelector("#outbox-alert").getAttribute("role")`, "alert")
	tb.until(`document.querySelector("#outbox-alert").innerText.includes("3 commands are waiting for the broker.")`)
	list := newTab(t, b, s, "/outbox")
	list.until(live)
	list.until(`document.querySelector("#outbox-tiles .word")?.innerText === "Paused"`)
	list.until(`document.querySelector("#r-1 .c-next").innerText.includes("next attempt")`)
	c.broker.Refuse(nil)
	list.until(`document.querySelector("#outbox-tiles .word")?.innerText === "On"`)
	list.until(`[...document.querySelectorAll("#commands .c-state")].every((e) => e.innerText.trim() === "Done")`)
	tb.until(`document.querySelector("#outbox-alert").hidden`)
	tb.want(`document.querySelector("#dead").hidden`, true)
}
