package main

import (
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]age{
		"0": 0, "0d": 0, "7d": age(7 * day), "36h": age(36 * time.Hour), "1d12h": age(36 * time.Hour), "90m": age(90 * time.Minute),
		"": -1, "7": -1, "d": -1, "-1d": -1, "-2h": -1, "1d-2h": -1, "7 days": -1, "1w": -1, "99999999d": -1, "106751d99999h": -1, "for ever": -1,
	} {
		got := age(-1)
		if err := got.UnmarshalText([]byte(text)); got != want || (err != nil) != (want == -1) {
			t.Errorf("age %q = %v, %v, want %v", text, time.Duration(got), err, time.Duration(want))
		}
	}
}
