package main_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testdjango"
)

// TestEndToEndBeatTables has Celery beat send what the tables of django-celery-beat say.
func TestEndToEndBeatTables(t *testing.T) {
	t.Parallel()
	broker := ownRedis(t)
	app := testdjango.SQLite(t, broker)
	app.Do(t, nil, `
from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask
second = IntervalSchedule.objects.create(every=1, period="seconds")
PeriodicTask.objects.create(name="often", task="shop.sync", interval=second, args='[]', kwargs='{}')
PeriodicTask.objects.create(name="nightly", task="shop.report", crontab=CrontabSchedule.objects.create(minute="0", hour="4", timezone="Europe/Vienna"), args='["s3cret"]')
PeriodicTask.objects.create(name="off", task="shop.off", interval=second, enabled=False)`)
	d := start(t, []string{"UMBEL_BROKER_URL=" + broker, "UMBEL_BEAT_URL=" + app.URL}, "serve")
	testdjango.Start(t, app.Beat())
	eventually(t, timeout, func() error {
		_, body := d.fetch(t, "api/v1/schedules")
		var got struct {
			Databases []struct {
				Items []struct {
					Name, Status string
				}
			}
		}
		if err := json.Unmarshal(body, &got); err != nil || len(got.Databases) != 1 {
			return fmt.Errorf("schedules: %w, %s", err, body)
		}
		status := map[string]string{}
		for _, e := range got.Databases[0].Items {
			status[e.Name] = e.Status
		}
		if status["often"] != "active" || status["nightly"] != "not_seen" || status["off"] != "disabled" {
			return fmt.Errorf("statuses: %v", status)
		}
		return nil
	})
	_, page := d.fetch(t, "schedules")
	for _, want := range []string{"every second", "crontab 0 4 * * *  Europe/Vienna", "On time", "Not seen yet", "Disabled"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(string(page), "s3cret") {
		t.Error("the page shows the arguments of a periodic task")
	}
}
