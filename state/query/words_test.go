package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/state/query"
)

func TestWordsAreWhatIsLookedForInTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                    nil,
		"state:failure name:billing.*":        nil,
		"41834":                               {"41834"},
		`"order 1" args:x,y -result:no`:       {"order 1", "x", "y"},
		"exc:Key*Error OR (trace:a*bc 41834)": {"41834", "bc", "Error"},
		"result:*":                            nil,
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, q.Words()); diff != "" {
			t.Errorf("words of %q (-want +got):\n%s", text, diff)
		}
	}
}
