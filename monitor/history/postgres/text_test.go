package postgres

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzEncodeText(f *testing.F) {
	for _, s := range []string{"", "a\x00b", "\xff\xfe", "任務🌱", "\U0010fe00", "\U0010ff41", "\xf4\x8f", "\ufffd"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := encodeText(s)
		if !utf8.ValidString(encoded) || strings.Contains(encoded, "\x00") {
			t.Errorf("%q is encoded as %q, which PostgreSQL refuses", s, encoded)
		}
		if got := decodeText(encoded); got != s {
			t.Errorf("%q is decoded as %q", s, got)
		}
	})
}
