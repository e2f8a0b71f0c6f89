package celery_test

import (
	"testing"

	"github.com/umbelhq/umbel/monitor/celery"
)

// BenchmarkOpen opens the envelope of one event, which Redis adds to its cost.
func BenchmarkOpen(b *testing.B) {
	payload := []byte(kombuEvent)
	b.SetBytes(int64(len(payload)))
	b.ReportAllocs()
	var o celery.EnvelopeParser
	if _, err := o.Parse(payload); err != nil { // the first of its kind is parsed in full
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := o.Parse(payload); err != nil {
			b.Fatal(err)
		}
	}
}

// kombuEvent is an event as Kombu 5.7 publishes it.
const kombuEvent = `{"body": "eyJob3N0bmFtZSI6ICJjZWxlcnlAd29ya2VyLTMiLCAidXRjb2Zmc2V0IjogMCwgInBpZCI6IDE2NzI0LCAiY2xvY2siOiAyNTAwLCAidXVpZCI6ICI4MmVkNjZlYy02ZjYxLTRhNjQtOWUxZi0wZDRjY2QxZjliN2EiLCAibmFtZSI6ICJiaWxsaW5nLnRhc2tzLmNoYXJnZV9jYXJkIiwgImFyZ3MiOiAiKDIwNDg4LCAnRVVSJykiLCAia3dhcmdzIjogInsncmV0cnknOiBUcnVlfSIsICJyb290X2lkIjogIjgyZWQ2NmVjLTZmNjEtNGE2NC05ZTFmLTBkNGNjZDFmOWI3YSIsICJwYXJlbnRfaWQiOiBudWxsLCAicmV0cmllcyI6IDAsICJldGEiOiBudWxsLCAiZXhwaXJlcyI6IG51bGwsICJ0aW1lc3RhbXAiOiAxNzk1MjIyMTUzLjk2MzUxNywgInR5cGUiOiAidGFzay1yZWNlaXZlZCJ9", "content-encoding": "utf-8", "content-type": "application/json", "headers": {"hostname": "celery@worker-3"}, "properties": {"delivery_mode": 1, "delivery_info": {"exchange": "celeryev", "routing_key": "task.received"}, "priority": 0, "body_encoding": "base64", "delivery_tag": "7c6b1f0e-0f4c-4d8b-9f0f-6d3f5a1f9b11"}}`
