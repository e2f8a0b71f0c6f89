package celery_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/celery"
)

// allocated is how many bytes f allocates. Nothing else may run.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The paths of all values together are as long as the square of the text.
func TestArgumentsCostAsMuchAsTheyAreLong(t *testing.T) { //nolint:paralleltest // it measures the process
	key := strings.Repeat("k", 200_000)
	for name, kwargs := range map[string]string{
		"elements": `{"` + key + `": [` + strings.Repeat("0,", 100_000) + `0]}`,
		"wrapped":  `{"` + key + `": [` + strings.Repeat(`{"__type__": "bytes", "__value__": ""},`, 5_000) + `0]}`,
	} {
		var err error
		got := allocated(func() {
			_, err = celery.Message{ID: "i", Name: "add", Kwargs: json.RawMessage(kwargs)}.Publishing(now)
		})
		if err != nil || got > 64<<20 {
			t.Errorf("%s: %d bytes allocated for %d, error %v", name, got, len(kwargs), err)
		}
	}
	_, err := celery.Message{ID: "i", Name: "add", Kwargs: json.RawMessage(`{"a b": [0, {"c": [1e999]}]}`)}.Publishing(now)
	if err == nil || !strings.HasPrefix(err.Error(), `kwargs["a b"][1].c[0]: `) {
		t.Errorf("error = %v, want one that names the place", err)
	}
}
