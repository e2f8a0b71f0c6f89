package idempotency_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain is also the main function of the workers that TestPythonAndGoContend starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == "contend" {
		if err := contend(os.Args[2:]); err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
