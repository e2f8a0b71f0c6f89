package simulate_test

import (
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/celery"
	"github.com/umbelhq/umbel/monitor/idempotency"
	"github.com/umbelhq/umbel/monitor/simulate"
)

// Some charges are sent twice under different ids, and both run: at once, or one after the other. Their arguments are
// whole, so that they can be recognised.
func TestSomeChargesAreMadeTwice(t *testing.T) {
	t.Parallel()
	s := record(t, simulate.Options{Seed: 1, Duplicates: true}, 5*time.Minute)
	s.decode(t)
	type run struct{ started, ended float64 }
	runs := map[string]*run{} // by id
	calls := map[string][]*run{}
	for _, e := range s.events {
		switch r := runs[e.UUID]; {
		case e.Type == "task-received" && e.Name == "payments.charge":
			r = &run{}
			runs[e.UUID] = r
			text, ok := celery.ParseRepr(e.Kwargs)
			if !ok {
				t.Fatalf("%s cannot be read", e.Kwargs)
			}
			kwargs, err := idempotency.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			fingerprint, err := idempotency.Fingerprint(e.Name, kwargs)
			if err != nil {
				t.Fatal(err)
			}
			calls[fingerprint] = append(calls[fingerprint], r)
		case r != nil && e.Type == "task-started":
			r.started = e.Timestamp
		case r != nil && e.Type == "task-succeeded":
			r.ended = e.Timestamp
		}
	}
	once, overlapping, after := 0, 0, 0
	for _, r := range calls {
		switch {
		case len(r) == 1:
			once++
		case r[0].ended == 0 || r[1].started == 0:
		case r[1].started < r[0].ended:
			overlapping++
		default:
			after++
		}
	}
	if once < 10 || overlapping == 0 || after == 0 {
		t.Errorf("%d once, %d at once, %d one after the other", once, overlapping, after)
	}
}
