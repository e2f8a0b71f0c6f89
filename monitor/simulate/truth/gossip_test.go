package truth_test

import (
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/simulate/truth"
	"github.com/umbelhq/umbel/state/gossip"
)

// listen has a detector hear a history, and asks it after each heartbeat.
func listen(h *truth.History, each func(now int64, r gossip.Report)) {
	var d gossip.Detector
	for _, i := range h.Arrived() {
		e := &h.Events[i]
		d.Add(&e.Event)
		if e.Subject == "heartbeat" {
			each(e.ReceivedMicros, d.Report(e.ReceivedMicros))
		}
	}
}

func hostOf(node string) string {
	_, host, _ := strings.Cut(node, "@")
	return host
}

// TestWorkersThatHearEachOtherAreNeverSaidToBeDeaf looks at histories with gossip, without, and with hosts that are cut off
// from each other half-way.
func TestWorkersThatHearEachOtherAreNeverSaidToBeDeaf(t *testing.T) {
	t.Parallel()
	var together, pairs, told, apart, coincidences int
	for seed := range histories() {
		plain := truth.Generate(seed)
		last, coincidence := gossip.Report{}, false
		listen(plain, func(_ int64, r gossip.Report) {
			if plain.Gossip && len(r.Deaf) > 0 {
				t.Fatalf("seed %d: %+v, although all hear each other", seed, r.Deaf)
			}
			if !plain.Gossip && len(r.Islands) > 0 {
				coincidence = true
			}
			if len(r.Islands) > 0 {
				last = r
			}
		})
		if coincidence {
			coincidences++
		}
		if plain.Gossip {
			pairs++
			if len(last.Islands) == 1 && len(last.Islands[0]) == last.Compared {
				together++
			}
		}
		split := truth.GenerateSplit(seed)
		found := false
		listen(split, func(now int64, r gossip.Report) {
			for _, v := range r.Deaf {
				if now < split.SplitAt || hostOf(v.Worker) == hostOf(v.Speaker) {
					t.Fatalf("seed %d: %+v at %d, although they hear each other", seed, v, now)
				}
				if !v.Longer && v.Since < split.SplitAt-2_000_000 {
					t.Fatalf("seed %d: deaf since %d, before the split at %d", seed, v.Since, split.SplitAt)
				}
				found = true
			}
		})
		apart++
		if found {
			told++
		}
	}
	t.Logf("clocks advance together by chance in %d of %d histories without gossip", coincidences, apart-pairs)
	t.Logf("all on one island in %d of %d histories with gossip; a split told in %d of %d", together, pairs, told, apart)
	if together*10 < pairs*7 || told*10 < apart*7 || coincidences*20 > apart-pairs {
		t.Errorf("too little is told")
	}
}
