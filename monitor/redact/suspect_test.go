package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/redact"
)

// TestMaskKnowsSecretsByTheirForm plants secrets in settings whose names tell little. They are put together here, so that
// nobody takes them for real ones.
func TestMaskKnowsSecretsByTheirForm(t *testing.T) {
	t.Parallel()
	letters, hex := "aB3dE6gH9jK2mN5pQ8sT1vW4", "0f9a3c7e1b5d8f2a6c4e0b9d7f3a1c5e"
	pem := "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIEow" + letters + "\n" + letters + "==\n-----END RSA PRIVATE " + "KEY-----\n"
	for _, test := range []struct{ setting, value, secret string }{
		{"stripe", "sk_" + "live_" + letters, letters},
		{"stripe_restricted", "rk_" + "test_" + letters, letters},
		{"hook", "whsec_" + letters, letters},
		{"private", pem, letters},
		{"x", strings.ReplaceAll(pem, "\n", `\n`), letters},
		{"cut_short", pem[:60], "MIIEow"},
		{"openssh", "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n" + letters, letters},
		{"encoded", "LS0tLS1CRUdJTi" + letters, letters},
		{"jwt", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + letters, letters},
		{"model", "sk-" + "ant-" + letters, letters},
		{"model2", "sk-" + "proj-" + letters, letters},
		{"repo", "ghp" + "_" + letters, letters},
		{"repo2", "github_" + "pat_" + letters, letters},
		{"repo3", "glpat" + "-" + letters, letters},
		{"chat", "xoxb" + "-123456789012-" + letters, letters},
		{"chat2", "https://hooks." + "slack.com/services/T0/B0/" + letters, letters},
		{"chat3", "https://discord.com/api/" + "webhooks/1234567/" + letters, letters},
		{"bot", "123456789" + ":AA" + letters + letters, letters},
		{"aws_id", "AKIA" + "ABCDEFGHIJ234567", "ABCDEFGHIJ234567"},
		{"maps", "AIza" + letters + letters, letters},
		{"oauth", "GOCSPX" + "-" + letters, letters},
		{"mail", "SG" + "." + letters + "." + letters, letters},
		{"mail2", "key" + "-" + hex, hex},
		{"packages", "npm" + "_" + letters, letters},
		{"packages2", "pypi" + "-" + letters, letters},
		{"images", "dckr" + "_pat_" + letters, letters},
		{"vault", "hvs" + "." + letters, letters},
		{"phone", "SK" + hex, hex},
		{"cloud", "dop" + "_v1_" + hex, hex},
		{"shop", "shp" + "at_" + hex, hex},
		{"header", "Bearer " + letters, letters},
		{"header2", "Basic " + letters, letters},
		{"blob", "https://h.blob.example/c?sv=2&sig=" + letters, letters},
		{"results", "db+postgresql://u:" + letters + "@h/d", letters},
		{"PGPWD", letters, letters},
		{"cookie_value", letters, letters},
		{"password_salt", hex, hex},
		{"webhooks", letters, letters},
		{"encryption", hex, hex},
		{"sentry", "{'session': '" + letters + "'}", letters},
		{"storage", "AccountName=a;AccountKey=" + letters + ";", letters},
	} {
		for name, value := range map[string]any{
			"setting": map[string]any{test.setting: test.value},
			"list":    map[string]any{test.setting: []any{test.value, 1}},
			"pair":    []any{[]any{test.setting, test.value}},
			"within":  map[string]any{test.setting: map[string]any{"a": test.value}},
		} {
			b, err := json.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(redact.Default().Settings(b)); strings.Contains(got, test.secret) {
				t.Errorf("%s as %s: mask of %s = %s", test.setting, name, b, got)
			}
		}
	}
}

func TestMaskKeepsWhatOnlyResemblesASecret(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		`{"security_certificate":"/etc/ssl/certs/worker-2026.pem","certs":["a.pem"],"private":true}`,
		`{"result_backend_always_retry":false,"session_ids":[1,2,3],"hash":"sha256"}`,
		`{"imports":["shop.tasks.signatures"],"task_routes":{"shop.tasks.design":{"queue":"risk-free"}}}`,
		`{"pin":"celery@worker-1","access":"read and write, as far as possible","spin":"aaaaaaaaaaaaaaaaaaaaaaaa1"}`,
		`"tasks {'7d1e6a52-1b2c-4d3e-8f90-a1b2c3d4e5f6'} flagged as revoked"`,
		`"-----BEGIN CERTIFICATE-----"`,
		`{"note":"Basic idea, Bearer of news, SG.1, sk-1, gh_, xox"}`,
	} {
		if got := string(redact.Default().Settings(json.RawMessage(value))); !same(t, got, value) {
			t.Errorf("mask of %s = %s", value, got)
		}
	}
}

// same reports whether two texts are the same JSON.
func same(t *testing.T, a, b string) bool {
	t.Helper()
	var texts [2]string
	for i, s := range []string{a, b} {
		var v any
		if err := json.Unmarshal([]byte(s), &v); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts[0] == texts[1]
}
