package flower_test

import (
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
)

// call is a request that Flower and Umbel answer alike.
type call struct {
	name   string            // what is asked, for the subtest
	mode   string            // how both run, a key of modes
	method string            // GET if empty
	path   string            // with {worker} for the name of the worker
	form   string            // body of a form
	json   string            // body in JSON
	header map[string]string // beside the type of the body
	silent bool              // the worker does not reply
	moves  bool              // the answer changes by itself: both are asked until they agree

	// differs names the difference of differences that this call shows. Empty means none.
	differs string
	umbel   string // what Umbel answers then: the status and the body up to here
}

// TestEndToEndFlowersAnswers asks Flower and Umbel, which watch one worker, the same.
func TestEndToEndFlowersAnswers(t *testing.T) {
	t.Parallel()
	testenv.Flower(t)
	tests := map[string]func(t *testing.T) (broker, management string){
		"Redis":    func(t *testing.T) (string, string) { t.Helper(); return ownRedis(t), "" },
		"RabbitMQ": ownVhost,
	}
	for name, broker := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, management := broker(t)
			s := newShop(t, url, management)
			s.pair(t, "")
			s.publish(t)
			s.settle(t)
			for _, c := range readingCalls() {
				t.Run(c.name, func(t *testing.T) { s.compare(t, c) })
			}
		})
	}
}

// asked asks until the worker has replied within the second that both wait.
func asked(t *testing.T, base string, c call) answer {
	t.Helper()
	for attempt := 0; ; attempt++ {
		a, err := ask(t.Context(), base, c)
		if err != nil {
			t.Fatalf("%s: %v", base, err)
		}
		if attempt == 8 || c.silent || !strings.Contains(a.body, "Unknown reason") {
			return a
		}
		<-time.After(time.Duration(attempt) * 500 * time.Millisecond) // a busy machine needs longer
	}
}

// compare asks both and reports how their answers differ, unless they are meant to. It returns that of Umbel.
func (s *shop) compare(t *testing.T, c call) answer {
	t.Helper()
	p := s.pair(t, c.mode)
	c.path = strings.ReplaceAll(c.path, "{worker}", s.worker)
	fromFlower, fromUmbel := asked(t, p.flower, c), asked(t, p.umbel, c)
	found := compare(fromFlower, fromUmbel)
	for attempt := 0; c.moves && len(found) > 0 && attempt < 10; attempt++ {
		<-time.After(500 * time.Millisecond)
		fromFlower, fromUmbel = asked(t, p.flower, c), asked(t, p.umbel, c)
		found = compare(fromFlower, fromUmbel)
	}
	if c.differs != "" {
		if _, ok := differences[c.differs]; !ok {
			t.Errorf("there is no difference named %q", c.differs)
		}
		if len(found) == 0 {
			t.Errorf("both answer the same; the difference %q is none any more", c.differs)
		}
		if got := fromUmbel.line(); !strings.HasPrefix(got, c.umbel) {
			t.Errorf("got %q, want %q", got, c.umbel)
		}
		return fromUmbel
	}
	for _, difference := range found {
		t.Error(difference)
	}
	return fromUmbel
}
