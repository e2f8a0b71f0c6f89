package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testbrowser"
	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/beat"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/web"
)

// shopTables are tables of django-celery-beat.
type shopTables struct {
	table beat.Table
	err   error
}

func (shopTables) Name() string                               { return "shop" }
func (shopTables) String() string                             { return "postgresql://umbel@db/shop" }
func (shopTables) Close() error                               { return nil }
func (s shopTables) Read(context.Context) (beat.Table, error) { return s.table, s.err }

// configured is a watcher of s that has read it.
func configured(t *testing.T, s beat.Source) *beat.Watcher {
	t.Helper()
	w, err := beat.New(beat.Options{Sources: []beat.Source{s}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	changed := w.Changed()
	var run sync.WaitGroup
	run.Go(func() { _ = w.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		run.Wait()
	})
	<-changed
	return w
}

func TestConfiguredSchedules(t *testing.T) {
	t.Parallel()
	w := configured(t, shopTables{table: beat.Table{Entries: []beat.Entry{{
		ID: 1, Name: "Send <b>invoices</b>", Task: "billing.invoice", Queue: "slow", Enabled: true, LastRunAt: time.Now(),
		Schedule: beat.Schedule{Kind: beat.Interval, Every: 30, Period: "minutes"},
	}}}})
	h := newWeb(t, web.Options{BeatTables: w, Prefix: "/ops"})
	page := visit(t, h, "/ops/schedules").Body.String()
	for _, want := range []string{"Configured in shop", "Send &lt;b&gt;invoices&lt;/b&gt;", "billing.invoice", "every 30 min", "Not seen yet", "to slow"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	var got struct {
		Databases []struct {
			Name  string
			Items []struct {
				Name, Schedule, Status string
				NextAt                 *time.Time `json:"next_at"`
			}
		}
	}
	body := visit(t, h, "/ops/api/v1/schedules").Body.Bytes()
	if err := json.Unmarshal(body, &got); err != nil || len(got.Databases) != 1 || len(got.Databases[0].Items) != 1 {
		t.Fatalf("schedules: %v, %s", err, body)
	}
	if e := got.Databases[0].Items[0]; e.Schedule != "every 30 min" || e.Status != "not_seen" || e.NextAt == nil {
		t.Errorf("periodic task = %+v", e)
	}
}

func TestSchedulesOfAnUnreachableDatabase(t *testing.T) {
	t.Parallel()
	const why = "The database postgresql://umbel@db/shop cannot be reached."
	h := newWeb(t, web.Options{BeatTables: configured(t, shopTables{err: &beat.Error{Text: why}}), Prefix: "/ops"})
	for _, path := range []string{"/ops/schedules", "/ops/api/v1/schedules"} {
		if got := visit(t, h, path); got.Code != http.StatusOK || !strings.Contains(got.Body.String(), why) {
			t.Errorf("GET %s = %d without the reason: %s", path, got.Code, got.Body)
		}
	}
}

// TestBrowserConfiguredSchedules looks at long names and at problems: nothing scrolls sideways, and axe-core finds nothing.
func TestBrowserConfiguredSchedules(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(testenv.Axe(t))
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("Nightly_report_", 12)
	table := beat.Table{Cut: true, Naive: true, Lacks: []string{"django_celery_beat_solarschedule"}, Entries: []beat.Entry{
		{ID: 1, Name: long, Task: "reports." + long, Queue: long, Enabled: true, Schedule: beat.Schedule{
			Kind: beat.Crontab, Minute: "0,5,10,15,20,25,30,35,40,45,50,55", Hour: "*", DayOfMonth: "*", MonthOfYear: "*", DayOfWeek: "*", Timezone: "America/Argentina/ComodRivadavia",
		}, Expires: time.Now().Add(time.Hour)},
		{ID: 2, Name: "off", Task: "shop.off", Schedule: beat.Schedule{Kind: beat.Interval, Every: 1, Period: "hours"}},
		{ID: 3, Name: "none", Task: "shop.none", Enabled: true},
	}}
	w := configured(t, shopTables{table: table})
	s := &server{t: t, backend: newChangingBackend(t, state.Options{MaxTasks: maxTasks}), prefix: "/ops", address: "127.0.0.1:0"}
	s.options = func(o *web.Options) { o.BeatTables = w }
	s.start()
	t.Cleanup(func() { s.stop() })
	lookAt(t, testbrowser.Open(t), string(script), []visitedPage{{address: "http://" + s.address + "/ops/schedules"}})
}
