package auth_test

import (
	"io"
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func copyBounded(w io.Writer, r *http.Response) (int64, error) {
	return io.Copy(w, io.LimitReader(r.Body, 1<<20))
}
