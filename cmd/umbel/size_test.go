package main

import "testing"

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]size{
		"0": 0, "1": 1, "512MiB": 512 << 20, "2GiB": 2 << 30, "64 KiB": 64 << 10,
		"": -1, "-1": -1, "2GB": -1, "many": -1, "9999999999GiB": -1,
	} {
		got := size(-1)
		if err := got.UnmarshalText([]byte(text)); got != want || (err != nil) != (want == -1) {
			t.Errorf("size %q = %d, %v, want %d", text, got, err, want)
		}
	}
}
