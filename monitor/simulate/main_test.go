package simulate_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/monitor/simulate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is when the simulations of these tests begin.
func start() time.Time { return time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC) }

// event is what the tests read of an event.
type event struct {
	Type, Hostname, UUID, Name string
	PID, Clock, Retries        int64
	Timestamp                  float64
	UTCOffset                  *float64
	RootID                     string  `json:"root_id"`
	ParentID                   *string `json:"parent_id"`
	Args, Kwargs               string
	ETA, Expires               *string
	Exception, Traceback       string
	Terminated, Expired        *bool
	Active                     *int64

	message int // index of the delivery
}

// recording is what a simulation published until its end, or for a while.
type recording struct {
	cluster    *simulate.Cluster
	deliveries []simulate.Delivery
	events     []event // in order of arrival
}

// record runs the simulation of o until it ends or virtual time passes limit after its start.
func record(t *testing.T, o simulate.Options, limit time.Duration) recording {
	t.Helper()
	o.Start = start()
	c, err := simulate.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := recording{cluster: c}
	for {
		d, ok := c.Next()
		if !ok || d.At.Sub(o.Start) > limit {
			return s
		}
		s.deliveries = append(s.deliveries, d)
	}
}

// decode fills s.events.
func (s *recording) decode(t *testing.T) {
	t.Helper()
	for i, d := range s.deliveries {
		events, err := parse(d.Body)
		if err != nil {
			t.Fatalf("delivery %d is no event message: %v\n%s", i, err, d.Body)
		}
		for _, e := range events {
			e.message = i
			s.events = append(s.events, e)
		}
	}
}

// parse reads an object or an array of events.
func parse(body []byte) ([]event, error) {
	if body[0] == '[' {
		var many []event
		err := json.Unmarshal(body, &many)
		return many, err
	}
	var one event
	err := json.Unmarshal(body, &one)
	return []event{one}, err
}

// process names the process that sent e.
func (e event) process() string {
	host := e.Hostname
	for i := range host {
		if host[i] == '@' {
			host = host[i+1:]
			break
		}
	}
	return fmt.Sprintf("%d on %s", e.PID, host)
}
