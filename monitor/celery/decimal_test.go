package celery_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// TestNumbersAreReadAsStrconvReadsThem writes times and run times as Python does, and in all other ways that are numbers.
func TestNumbersAreReadAsStrconvReadsThem(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 15))
	texts := []string{
		"0", "-0", "-0.0", "0.5", "-12", "12.", "012", "1e3", "2.5e-3", "1.5.5", "NaN", "-Infinity", "Infinity", "4294967295.9999999",
		"4294967296.0000001", "536870911.9999999", "536870912.00000001", "123456789012345678", "1234567890123456789", "0.1234567890123456789",
		"9007199254740993", "9007199254740992.5", "946684800", "4102444799.999999", "4102444799.9999999", "1795222153.9635175",
		"1795222153.96351749", "1795222153.96351751", "-1795222153.5", "3000000000.1234565", "3000000000.12345650",
	}
	for range 200_000 {
		seconds := random.Float64() * 4.2e9
		texts = append(texts, strconv.FormatFloat(seconds, 'f', -1, 64), strconv.FormatFloat(seconds, 'f', random.IntN(10), 64))
	}
	for range 50_000 {
		run := random.ExpFloat64()
		texts = append(texts, strconv.FormatFloat(run, 'f', -1, 64), strconv.FormatFloat(run, 'g', random.IntN(20), 64))
	}
	for _, text := range texts {
		want, err := strconv.ParseFloat(text, 64)
		events, lost, _, _ := decode(task(fmt.Sprintf(`"timestamp":%s,"runtime":%[1]s,"retries":%[1]s`, text)))
		if lost != 0 || len(events) != 1 {
			t.Fatalf("%s: %d events, %d lost", text, len(events), lost)
		}
		e := events[0]
		if e.Runtime != want && err == nil && !math.IsNaN(want) || math.Signbit(e.Runtime) != math.Signbit(want) && err == nil {
			t.Errorf("%s: a run time of %v s, want %v", text, e.Runtime, want)
		}
		if micros := int64(math.Round(want * 1e6)); !e.Retimed && e.Micros != micros {
			t.Errorf("%s: at %d µs, want %d", text, e.Micros, micros)
		}
		if valid := want >= 946684800 && want*1e6 < 4102444799.9e6; valid == e.Retimed && want < 4.1024447e9 {
			t.Errorf("%s: retimed: %v", text, e.Retimed)
		}
		integer, err := strconv.ParseInt(text, 10, 64)
		if err != nil && math.Abs(want) < 1<<62 {
			integer = int64(want)
		}
		if e.Retries != integer && math.Abs(want) < 1<<62 {
			t.Errorf("%s: %d retries, want %d", text, e.Retries, integer)
		}
	}
}
