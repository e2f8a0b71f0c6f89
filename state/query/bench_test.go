package query_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/state/query"
)

// BenchmarkMatch is one task with typical texts, which no condition excludes early.
func BenchmarkMatch(b *testing.B) {
	task := failedTask()
	task.Kwargs = new(strings.Repeat("'user_id': 42, ", 20))
	task.Traceback = new(strings.Repeat(`  File "/app/billing/tasks.py", line 40, in charge`, 20))
	for _, s := range []string{"state:failure name:billing.* run:>1s", "timeoot", "line*50", "exc:Grüße"} {
		b.Run(s, func(b *testing.B) {
			q, err := query.Parse(s)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				q.Match(&task, noon())
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := query.Parse(`state:failure,retry name:billing.* run:>2s received:-1h.. (a OR "b c")`); err != nil {
			b.Fatal(err)
		}
	}
}
