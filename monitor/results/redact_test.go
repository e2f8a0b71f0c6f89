package results_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/monitor/results"
)

// failed is a backend with one failure, and the tasks that were marked as aborted.
type failed struct {
	record  string
	aborted *[]string
}

func (f failed) Result(_ context.Context, id string) (results.Result, error) {
	return results.Parse(id, []byte(f.record))
}

func (f failed) Abort(_ context.Context, id string, _ time.Time) error {
	*f.aborted = append(*f.aborted, id)
	return nil
}

func (failed) String() string { return "failed" }
func (failed) Close() error   { return nil }

func TestRedactLeavesNoSecretInExceptions(t *testing.T) {
	t.Parallel()
	b := results.Redact(failed{record: `{"status":"FAILURE","result":{"exc_type":"ValueError","exc_message":["password=hunter2"],"exc_module":"builtins"},` +
		`"traceback":"ValueError: password=hunter2"}`}, redact.Default())
	r, err := b.Result(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{r.Exception, r.Repr, r.Traceback} {
		if text == "" || strings.Contains(text, "hunter2") {
			t.Errorf("got %q, want it without the password", text)
		}
	}
}

func TestAbortReachesTheBackendThatIsWrapped(t *testing.T) {
	t.Parallel()
	var aborted []string
	b := results.Redact(failed{aborted: &aborted}, redact.Default())
	b = results.WithArguments(b, nil, nil)
	if err := results.Abort(t.Context(), b, "a", time.Now()); err != nil || len(aborted) != 1 || aborted[0] != "a" {
		t.Errorf("aborted %q, error %v", aborted, err)
	}
}
