package main_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// A token that is made for a cluster on the command line opens that one alone, and is revoked as one of that one alone.
func TestTokensOfClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token := func(want int, args ...string) string {
		t.Helper()
		status, out, said := once(t, nil, nil, append([]string{"token"}, append(args, "--data-dir", dir)...)...)
		if status != want {
			t.Fatalf("token %v: status %d, %s, want %d", args, status, said, want)
		}
		return strings.TrimSpace(out + said)
	}
	secret := token(0, "create", "--name", "deploy", "--cluster", "shop")
	token(0, "create", "--name", "grafana")
	d := start(t, []string{"UMBEL_BASIC_AUTH=ann:s3cret", "UMBEL_CLUSTER=shop=redis://127.0.0.1:1/0,billing=redis://127.0.0.1:1/1"}, "serve", "--data-dir", dir)
	for path, want := range map[string]int{
		"clusters/shop/api/v1/workers": http.StatusOK, "clusters/billing/api/v1/workers": http.StatusNotFound, "api/v1/clusters": http.StatusOK,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s answers %d, want %d", path, res.StatusCode, want)
		}
	}
	d.end(t, syscall.SIGTERM)
	if list := token(0, "list", "--cluster", "billing"); strings.Contains(list, "deploy") || !strings.Contains(list, "grafana") {
		t.Errorf("tokens for billing:\n%s", list)
	}
	if list := token(0, "list", "--cluster", "shop"); !strings.Contains(list, "shop:viewer") || !strings.Contains(list, "grafana") {
		t.Errorf("tokens for shop:\n%s", list)
	}
	if said := token(1, "revoke", "2", "--cluster", "shop"); said != "umbel: token 2 is not for the cluster shop alone" {
		t.Errorf("revoke: %s", said)
	}
	token(0, "revoke", "1", "--cluster", "shop")
	token(2, "create", "--name", "x", "--cluster", "a/b")
}
