package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
)

// The users of Flower's basic_auth sign in with their passwords, and nobody else does.
func TestFlowerBasicAuth(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "flowerconfig.py")
	if err := os.WriteFile(file, []byte("basic_auth = ['ann:se,\"cret', 'bob:word']\nurl_prefix = 'ops'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, nil, "-b", "redis://127.0.0.1:1/0", "flower", "--conf="+file, "--debug")
	for name, test := range map[string]struct {
		user, password string
		want           int
	}{
		"nobody": {want: http.StatusUnauthorized}, "wrong": {"ann", "word", http.StatusUnauthorized},
		"ann": {"ann", `se,"cret`, http.StatusOK}, "bob": {"bob", "word", http.StatusOK},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"api/v1/overview", nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.user != "" {
			req.SetBasicAuth(test.user, test.password)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != test.want {
			t.Errorf("%s: status %d, want %d", name, res.StatusCode, test.want)
		}
	}
}
