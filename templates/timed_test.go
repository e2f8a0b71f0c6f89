package templates

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTimesOfSentencesAreFound(t *testing.T) {
	t.Parallel()
	const noon = 1_795_262_400_000_000
	for in, want := range map[string][]timePiece{
		"":                        {{}},
		"in UTC":                  {{text: "in UTC"}},
		"12:00 UTC":               {{text: "12:00 UTC"}},
		"2026-11-21 12:00:00":     {{text: "2026-11-21 12:00:00"}},
		"2026-13-21 12:00:00 UTC": {{text: "2026-13-21 12:00:00 UTC"}},
		"Seen at 2026-11-21 12:00:00 UTC, in UTC, and 2026-11-21 12:00:00.250 UTC.": {
			{text: "Seen at "}, {"2026-11-21 12:00:00", noon}, {text: ", in UTC, and "}, {"2026-11-21 12:00:00.250", noon + 250_000}, {text: "."},
		},
		"since 2026-11-21 12:00:00.000001 UTC": {{text: "since "}, {"2026-11-21 12:00:00.000001", noon + 1}, {}},
	} {
		if diff := cmp.Diff(want, timePieces(in), cmp.AllowUnexported(timePiece{})); diff != "" {
			t.Errorf("pieces of %q (-want +got):\n%s", in, diff)
		}
	}
}
