package results_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/monitor/results"
)

type stored struct{ results.Backend }

func (stored) Result(_ context.Context, id string) (results.Result, error) {
	r := map[string]results.Result{
		"whole":   {Args: json.RawMessage(`[1]`), Kwargs: json.RawMessage(`{"a": "x"}`)},
		"nan?":    {Args: json.RawMessage(`[null]`), Kwargs: json.RawMessage(`{}`)},
		"latin":   {Args: json.RawMessage(`["\ufffd"]`), Kwargs: json.RawMessage(`{}`)},
		"plain":   {},
		"strange": {Args: json.RawMessage(`"(1,)"`), Kwargs: json.RawMessage(`{}`)},
	}[id]
	return r, nil
}

func TestArgumentsAreLearnedWhereTheyAreWhole(t *testing.T) {
	t.Parallel()
	learned := map[string]string{}
	b := results.WithArguments(stored{}, func(_ context.Context, id string, args, kwargs []byte) error {
		learned[id] = string(args) + string(kwargs)
		return nil
	}, slog.New(slog.DiscardHandler))
	for _, id := range []string{"whole", "nan?", "latin", "plain", "strange"} {
		if _, err := b.Result(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"whole": `[1]{"a": "x"}`}, learned); diff != "" {
		t.Errorf("learned (-want +got):\n%s", diff)
	}
}
