package sqlite_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/history"
	"github.com/umbelhq/umbel/monitor/history/sqlite"
)

// damagedHistory returns a directory with a history of tasks, orders and a view in a file of many pages.
func damagedHistory(t *testing.T, batches []history.Batch, spoil func(t *testing.T, dir string)) (dir, renamed string) {
	t.Helper()
	dir = t.TempDir()
	d := open(t, dir)
	for _, b := range batches {
		write(t, d, b)
	}
	enqueue(t, d, 3)
	if _, err := d.SaveView(t.Context(), history.View{Name: "mine", Query: "state:failure"}); err != nil {
		t.Fatal(err)
	}
	closed(t, d)
	spoil(t, dir)
	renamed = dir + "/history.damaged-20261122T100000Z.db"
	rename(t, file(dir), renamed)
	return dir, renamed
}

func recovery(t *testing.T, d *sqlite.DB, path string) sqlite.Recovered {
	t.Helper()
	steps := 0
	done, err := d.Recover(t.Context(), path, func(sqlite.Recovered) { steps++ })
	if err != nil {
		t.Fatal(err)
	}
	if steps == 0 {
		t.Error("no progress was told")
	}
	return done
}

func TestRepairTakesOverAllThatIsWhole(t *testing.T) {
	t.Parallel()
	batches := testBatches(t, 300, 24, 60)
	dir, renamed := damagedHistory(t, batches, func(*testing.T, string) {})
	d := open(t, dir)
	defer closed(t, d)
	done := recovery(t, d, renamed)
	tasks, _, err := restored(d)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := written(batches)
	if len(tasks) != len(want) || done.Tasks != len(want) {
		t.Errorf("%d tasks, %d of them taken over, want %d", len(tasks), done.Tasks, len(want))
	}
	if diff := cmp.Diff(want, tasks); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if len(done.Incomplete) > 0 || len(done.Skipped) > 0 || done.Unreadable > 0 || done.Rows["outbox"] != 3 || done.Rows["audit"] < 3 || done.Rows["views"] != 1 {
		t.Errorf("%+v, want three orders, their records, a view and nothing missing", done)
	}
	if bad, err := d.VerifyAudit(t.Context()); bad != 0 || err != nil {
		t.Errorf("record %d of the audit log is not as it was: %v", bad, err)
	}
	again := recovery(t, d, renamed)
	if got := strings.Join(again.Skipped, " "); again.Rows["views"] != 0 || !strings.Contains(got, "audit") {
		t.Errorf("a second time: %+v, want no view and that the audit log is left", again)
	}
	if tasks, _, err := restored(d); err != nil || len(tasks) != len(want) {
		t.Errorf("a second time there are %d tasks, %v, want %d", len(tasks), err, len(want))
	}
}

func TestRepairTakesOverWhatReads(t *testing.T) {
	t.Parallel()
	const page = 4096
	batches := testBatches(t, 2_000, 24, 400)
	want, _ := written(batches)
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"one page in twenty": func(t *testing.T, dir string) {
			t.Helper()
			const interior = 5 // page of a table whose loss takes all pages below it along
			whole := read(t, file(dir))
			for at := 60 * page; at+page <= len(whole); at += 20 * page {
				schema := strings.Contains(string(whole[at:at+page]), "CREATE ") // without it, no table can be read
				if whole[at] != interior && !schema {
					overwrite(t, dir, int64(at), []byte(strings.Repeat("\xa5", page)))
				}
			}
		},
		"the last tenth": func(t *testing.T, dir string) {
			t.Helper()
			size := int64(len(read(t, file(dir)))) / page * page
			overwrite(t, dir, size/10*9/page*page, []byte(strings.Repeat("\xa5", int(size-size/10*9/page*page))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, renamed := damagedHistory(t, batches, spoil)
			d := open(t, dir)
			defer closed(t, d)
			done := recovery(t, d, renamed)
			tasks, _, err := restored(d)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d of %d tasks: %+v", len(tasks), len(want), done)
			if done.Tasks != len(tasks) {
				t.Errorf("%d tasks are said to be added, %d are there", done.Tasks, len(tasks))
			}
			if len(tasks) < len(want)/2 || len(done.Incomplete) == 0 {
				t.Errorf("%d of %d tasks, lost %q, want half of them at least, and that some are lost", len(tasks), len(want), done.Incomplete)
			}
			for id, events := range tasks {
				if events != want[id] {
					t.Errorf("task %s is not as it was", id)
				}
			}
		})
	}
}
