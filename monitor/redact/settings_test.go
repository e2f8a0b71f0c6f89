package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/redact"
)

func TestMask(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ value, want string }{
		"key":             {`{"broker_password":"x"}`, `{"broker_password":"********"}`},
		"any case":        {`{"AWS_Secret_Thing":"x","myApiKey":"y","sentryDsn":"z"}`, `{"AWS_Secret_Thing":"********","myApiKey":"********","sentryDsn":"********"}`},
		"number":          {`{"pass":1234}`, `{"pass":"********"}`},
		"what tells less": {`{"credential_provider":null,"passive":false,"auth":"","key":true}`, `{"auth":"","credential_provider":null,"key":true,"passive":false}`},
		"whole value":     {`{"token":{"a":["x"]}}`, `{"token":"********"}`},
		"deep":            {`[[{"a":[{"secret":"x"}]}]]`, `[[{"a":[{"secret":"********"}]}]]`},
		"pairs":           {`[["password","x"],["host","h"]]`, `[["password","********"],["host","h"]]`},
		"URL":             {`"amqp://guest:x@127.0.0.1:5681//"`, `"amqp://guest:********@127.0.0.1:5681//"`},
		"URL no user":     {`"redis://:x@h:6379/0"`, `"redis://:********@h:6379/0"`},
		"alternates":      {`{"alternates":["amqp://a:x@h1//","amqp://b:y@h2//"]}`, `{"alternates":["amqp://a:********@h1//","amqp://b:********@h2//"]}`},
		"list of URLs":    {`"amqp://a:x@h1//;amqp://b:y@h2//"`, `"amqp://a:********@h1//;amqp://b:********@h2//"`},
		"URL as a key":    {`{"amqp://a:x@h1":1}`, `{"amqp://a:********@h1":1}`},
		"query":           {`"rediss://h/0?ssl_cert=a&password=x&db=1"`, `"rediss://h/0?ssl_cert=a&password=********&db=1"`},
		"text of Python":  {`"{'host': 'h', 'password': 'x', 'port': 1}"`, `"{'host': 'h', 'password': '********', 'port': 1}"`},
		"text of JSON":    {`"{\"api_key\": \"x\"}"`, `"{\"api_key\": \"********\"}"`},
		"quoted twice":    {`"\"{\\\"token\\\": \\\"x\\\"}\""`, `"\"{\\\"token\\\": \\\"********\\\"}\""`},
		"nothing":         {`{"a":1,"b":["c@d","1.5"],"broker_url":"amqp://guest@h//"}`, `{"a":1,"b":["c@d","1.5"],"broker_url":"amqp://guest@h//"}`},
		"big numbers":     {`{"a":123456789012345678901234567890}`, `{"a":123456789012345678901234567890}`},
		"no JSON":         {`{"a":`, `null`},
		"empty":           {``, `null`},
	} {
		if got := string(redact.Default().Settings(json.RawMessage(test.value))); got != test.want {
			t.Errorf("%s: mask of %s = %s, want %s", name, test.value, got, test.want)
		}
	}
}

// TestMaskLeaksNothing hides one word in hostile places.
func TestMaskLeaksNothing(t *testing.T) {
	t.Parallel()
	const word = "hunter2"
	for _, place := range []string{
		"amqp://user:%s@host/", "amqp://user:p@%s@host/", "amqp://user:a/%s@host/", "amqp://user:%s?x@host", "amqp://user:a#%s@host",
		"amqp://user:%s;a@host", "amqp://user:'%s'@host", `amqp://user:"%s"@host`, "amqp://user:a://%s@host", "AMQPS://user:%s@host",
		"redis+socket://:%s@/run/redis.sock", "sentinel://:%s@h1:26379/0;sentinel://:%s@h2", "user:%s@host", "x=user:%s@host", "(user:%s@host)",
		"db+postgresql://u:%s@h/d", "can't reach amqp://u:%s@h: refused", "first\namqp://u:%s@h\n", "amqp://u:%%2F%s@h",
		"https://h/?token=%s", "https://h/?a=1&API_KEY=%s#x", "password=%s", "password = %s", "PASSWORD='%s'", "dsn=\"a %s b\"",
		"{'password': '%s'}", "{'password': ('a', '%s')}", "{'auth': {'x': [']', '%s']}}", `{"secret":"a\"%s"}`, `{"secret":["a","%s"]}`,
		"{'password': b'%s'}", "x_password='it\\'s %s'", "\nbroker_password: %s", "a: 1\nmy_token: {'x':\n  '%s'}\nb: 2", "MY_SECRET: %s",
		"redis://h/0?password=%s,redis://h2", "postgresql://u:%s@h1,postgresql://u:%s@h2",
	} {
		secret := strings.ReplaceAll(strings.ReplaceAll(place, "%s", word), "%%", "%")
		if got := maskText(t, secret); strings.Contains(got, word) {
			t.Errorf("text %q becomes %q", secret, got)
		}
		nested := any(secret)
		for range 50 {
			nested = map[string]any{"a": []any{nested, 1, nil}}
		}
		value, err := json.Marshal(map[string]any{"x": nested, secret: "y", "list": []string{secret, secret}})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(redact.Default().Settings(value)); strings.Contains(got, word) {
			t.Errorf("%q within JSON becomes %s", secret, got)
		}
	}
}

// TestHostileSettingsTakeNoLonger would take minutes if each name were followed to the end.
func TestHostileSettingsTakeNoLonger(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"SALT=", "SALT=[", `SALT='\'`, "KEY=SALT=(", "SALT={'x"} {
		redact.Default().SettingsText(strings.Repeat(unit, 100_000))
	}
}

func TestMaskTextKeepsWhatIsNoSecret(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "pong", "no reply from celery@w1 in 2 s", "tasks {'a', 'b'} flagged as revoked", "KeyError('celery@w1')",
		"AttributeError(\"module 'signal' has no attribute 'SIGBOGUS'\")", "add consumer mail@host", "amqp://h:5672//", "autoscale now max=3 min=2",
		"software -> celery:5.6.3 (recovery) kombu:5.6.2 py:3.11.2", "12:30:00 celery@w1", "AuthenticationError: refused",
		"new rate limit set successfully",
	} {
		if got := maskText(t, s); got != s {
			t.Errorf("text %q becomes %q", s, got)
		}
	}
}

// FuzzMask wants JSON out of anything, and no panic.
func FuzzMask(f *testing.F) {
	for _, s := range []string{`{"a":"amqp://u:p@h"}`, `"password='x"`, `"{\"k\\\"ey\":"`, `[["token",[]]]`, `"secret=\\"`, `"key=((("`, `"pass\":"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		if got := redact.Default().Settings(value); !json.Valid(got) {
			t.Fatalf("mask of %q is no JSON: %q", value, got)
		}
	})
}

// maskText masks a string on its own.
func maskText(t *testing.T, s string) (masked string) {
	t.Helper()
	value, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(redact.Default().Settings(value), &masked); err != nil {
		t.Fatal(err)
	}
	return masked
}
