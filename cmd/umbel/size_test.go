package main

import "testing"

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]size{
		"1": 1, "512MiB": 512 << 20, "2GiB": 2 << 30, "64 KiB": 64 << 10,
		"": 0, "0": 0, "-1": 0, "2GB": 0, "many": 0, "9999999999GiB": 0,
	} {
		var got size
		if err := got.UnmarshalText([]byte(text)); got != want || (err != nil) != (want == 0) {
			t.Errorf("size %q = %d, %v, want %d", text, got, err, want)
		}
	}
}
