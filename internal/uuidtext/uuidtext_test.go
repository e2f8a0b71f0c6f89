package uuidtext_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/umbelhq/umbel/internal/uuidtext"
)

func TestEveryUUIDIsReadAndWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bytes"))
		text := uuidtext.Format(want)
		if string(text[:]) != want.String() {
			t.Fatalf("%x is written %s, want %s", want[:], text, want)
		}
		if got, ok := uuidtext.Parse(want.String()); !ok || got != want {
			t.Fatalf("%s is read as %x, %v", want, got, ok)
		}
		at := rapid.IntRange(0, 35).Draw(t, "place")
		other := rapid.ByteRange(0, 255).Draw(t, "byte")
		wrong := want.String()[:at] + string([]byte{other}) + want.String()[at+1:]
		_, ok := uuidtext.Parse(wrong)
		if _, err := uuid.Parse(wrong); ok != (err == nil && wrong == strings.ToLower(wrong)) {
			t.Fatalf("%q is read: %v", wrong, ok)
		}
	})
	for _, text := range []string{"", "3f0bd0a594b44d6c8f0e000000000001", "{3f0bd0a5-94b4-4d6c-8f0e-000000000001}"} {
		if _, ok := uuidtext.Parse(text); ok {
			t.Errorf("%q is read", text)
		}
	}
}
