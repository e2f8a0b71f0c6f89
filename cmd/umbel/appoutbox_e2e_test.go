package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/internal/testdjango"
	"github.com/umbelhq/umbel/internal/testenv"
)

// TestEndToEndApplicationOutbox follows tasks of a Django application from the transaction to the worker.
func TestEndToEndApplicationOutbox(t *testing.T) {
	t.Parallel()
	broker := testenv.VirtualHost(t)
	app := testdjango.PostgreSQL(t, broker)
	d := start(t, []string{"UMBEL_BROKER_URL=" + broker, "UMBEL_OUTBOX_URL=" + app.URL + "&name=shop"}, "serve")
	ctx, shut := chromedp.NewContext(testbrowser.Open(t))
	defer shut()
	page := &tab{url: d.url, ctx: ctx}
	open := func(path string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(d.url+path)); err != nil {
			t.Fatalf("open %s: %v", path, err)
		}
	}
	shows := func(words ...string) {
		t.Helper()
		eventually(t, timeout, func() error {
			text, err := tryEvaluate[string](page, `document.querySelector("main").innerText`)
			if err != nil {
				return err
			}
			for _, w := range words {
				if !strings.Contains(text, w) {
					return fmt.Errorf("the page has no %q: %s", w, text)
				}
			}
			return nil
		})
	}
	click := func(selector string) {
		t.Helper()
		page.until(t, fmt.Sprintf("(e => e !== null && (e.click(), true))(document.querySelector(%q))", selector))
	}
	lists := func(q, id string) {
		t.Helper()
		eventually(t, timeout, func() error {
			status, body := d.fetch(t, "api/v1/tasks?"+url.Values{"q": {q}}.Encode())
			if status != http.StatusOK || !strings.Contains(string(body), id) {
				return fmt.Errorf("%s = %d without %s: %s", q, status, id, body)
			}
			return nil
		})
	}

	id := app.Enqueue(t, "shop.charge", []any{7}, map[string]any{"card": "4711-secret"})
	open("tasks/" + id)
	shows("shop.charge", "Outbox of shop", "Pending", "Committed")
	lists("outbox:pending", id)
	lists("id:"+id, id)
	lists(id[:8], id)
	if _, body := d.fetch(t, "outbox/app"); !strings.Contains(string(body), "shop.charge") || strings.Contains(string(body), "4711-secret") {
		t.Errorf("the page of the outbox lacks the task or shows what the application redacts: %s", body)
	}

	dead := app.Enqueue(t, "shop.charge", []any{8}, nil)
	letter := app.Bury(t, dead)
	lists("outbox:dead", dead)

	testdjango.Start(t, app.Worker())
	testdjango.Start(t, app.Relay())
	shows("Success", "Sent before", "Received by a worker", "task-sent", "task-succeeded")
	lists("outbox:sent state:success", id)

	open("outbox/app/dead")
	shows("shop.charge", "Requeue all")
	click(fmt.Sprintf(`a[href*="action=requeue"][href*="id=%d"]`, letter))
	click(`form[action$="/act/dead-letters"] button.primary`)
	page.until(t, `location.pathname.match(/\/outbox\/\d+$/) !== null`)
	open("tasks/" + dead)
	shows("Success")
	var count int
	if app.Do(t, &count, `result = CeleryOutbox.objects.count() + CeleryOutboxDeadLetter.objects.count()`); count != 0 {
		t.Errorf("%d rows and dead letters are left, want none", count)
	}
	_, body := d.fetch(t, "api/v1/commands?kind=requeue_dead_letters")
	var commands struct {
		Items []struct {
			State   string `json:"state"`
			Replies []struct {
				Text string `json:"text"`
			} `json:"replies"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &commands); err != nil || len(commands.Items) != 1 || commands.Items[0].State != "done" ||
		len(commands.Items[0].Replies) != 1 || commands.Items[0].Replies[0].Text != "1 dead letter moved into the outbox" {
		t.Errorf("commands: %v, %s", err, body)
	}
}
