package eventgen

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// Wild makes n events of a few tasks that make no sense together: any kind, sender, clock and time, with
// fields missing or null at random. Every event by itself is one that Celery accepts.
func Wild(seed uint64, n int) []json.RawMessage {
	rng := rand.New(rand.NewPCG(seed, 13))
	subjects := []string{
		"sent", "received", "started", "succeeded", "failed", "rejected", "revoked", "retried", "progress", "cancelled", "custom-thing",
	}
	var events []json.RawMessage
	for range n {
		worker, task := rng.IntN(3), rng.IntN(3)
		subject := subjects[rng.IntN(len(subjects))]
		e := map[string]any{
			"type": "task-" + subject, "uuid": fmt.Sprintf("task-%d", task), "hostname": fmt.Sprintf("w%d@host", worker),
			"pid": 100 + worker, "timestamp": 1_790_000_000 + float64(rng.IntN(1000)) + float64(rng.IntN(8))/8, "utcoffset": 0,
		}
		if subject == "sent" {
			e["hostname"] = "gen1@client"
		}
		if rng.IntN(8) != 0 {
			e["clock"] = 1 + rng.IntN(300)
		}
		for key, value := range fieldsOf(subject, task, rng) {
			switch rng.IntN(6) {
			case 0:
			case 1:
				e[key] = nil
			default:
				e[key] = value
			}
		}
		body, err := json.Marshal(e)
		if err != nil {
			panic(err) // plain values only
		}
		events = append(events, body)
	}
	return events
}

func fieldsOf(subject string, task int, rng *rand.Rand) map[string]any {
	publisher := map[string]any{
		"name": fmt.Sprintf("n%d", rng.IntN(3)), "args": fmt.Sprintf("(%d,)", rng.IntN(9)), "kwargs": "{'ä': 1}", "root_id": fmt.Sprintf("task-%d", rng.IntN(4)),
		"parent_id": fmt.Sprintf("task-%d", task+1), // always the same: see TestCeleryRulesEqualCelery
		"retries":   rng.IntN(4), "eta": "2026-11-21T10:00:00+00:00", "expires": "2026-11-22T10:00:00+00:00",
	}
	switch subject {
	case "sent":
		publisher["queue"], publisher["exchange"], publisher["routing_key"] = "q", "", fmt.Sprintf("rk%d", rng.IntN(2))
		return publisher
	case "received":
		return publisher
	case "succeeded":
		return map[string]any{"result": fmt.Sprintf("'%d'", rng.IntN(9)), "runtime": float64(rng.IntN(1000)) / 128}
	case "failed", "retried":
		return map[string]any{"exception": fmt.Sprintf("E(%d)", rng.IntN(9)), "traceback": "Traceback"}
	case "revoked":
		return map[string]any{"terminated": true, "signum": "15", "expired": false}
	}
	return nil
}
