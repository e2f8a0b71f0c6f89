package truncate_test

import (
	"testing"

	"github.com/umbelhq/umbel/internal/truncate"
)

func TestTruncate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ got, want string }{
		"bytes, short enough":        {truncate.Bytes("née", 4), "née"},
		"bytes, inside a character":  {truncate.Bytes("née", 2), "n"},
		"bytes, none":                {truncate.Bytes("é", 0), ""},
		"text, short enough":         {truncate.Text("née", 4), "née"},
		"text, inside a character":   {truncate.Text("née", 2), "n…"},
		"text, invalid":              {truncate.Text("a\xffb", 9), "a\uFFFDb"},
		"characters, short enough":   {truncate.Chars("née", 3), "née"},
		"characters, one too many":   {truncate.Chars("née", 2), "né…"},
		"characters, invalid":        {truncate.Chars("\xff\xff", 1), "\uFFFD"},
		"characters, nothing at all": {truncate.Chars("", 0), ""},
	}
	for name, test := range tests {
		if test.got != test.want {
			t.Errorf("%s: got %q, want %q", name, test.got, test.want)
		}
	}
}
