package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/monitor/redact"
	"github.com/umbelhq/umbel/state"
)

func newRedactor(tb testing.TB, rules ...string) *redact.Redactor {
	tb.Helper()
	r, err := redact.New(redact.Options{Rules: rules})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestText(t *testing.T) {
	t.Parallel()
	r := newRedactor(t, "key ssn", `text \b\d{3}-\d{2}-\d{4}\b`, "cards")
	for in, want := range map[string]string{
		// reprs
		`{'password': 'hunter2', 'user': 'bob'}`:                         `{'password': '********', 'user': 'bob'}`,
		`{'user': 'bob', 'Password': "it's"}`:                            `{'user': 'bob', 'Password': "********"}`,
		`{'db_password': b'hunter2', 'n': 1}`:                            `{'db_password': '********', 'n': 1}`,
		`{'apiKey': 'a', 'API-KEY': 'b', 'api_key': 'c', 'k': 1}`:        `{'apiKey': '********', 'API-KEY': '********', 'api_key': '********', 'k': 1}`,
		`{'auth': {'token': ['a', {'b': 'c'}], 'x': 1}}`:                 `{'auth': {'token': '********', 'x': 1}}`,
		`{'secret': Decimal('1.5'), 'user': 'bob'}`:                      `{'secret': '********', 'user': 'bob'}`,
		`{'secret': <Secret a, b>, 'user': 'bob'}`:                       `{'secret': '********', 'user': 'bob'}`,
		`{'token': 12345, 'user': 'bob'}`:                                `{'token': '********', 'user': 'bob'}`,
		`{'token': None, 'password': '', 'secret': True}`:                `{'token': None, 'password': '', 'secret': True}`,
		`{'password': 'say \'hi\' to...`:                                 `{'password': '********'`,
		`{'password': 'abc\', 'user': 'bob'}`:                            `{'password': '********'user': 'bob'}`,
		`{'password': {'a': 'x`:                                          `{'password': '********'`,
		`('bob', {'a': {'passwd': 'x', ...}, ...})`:                      `('bob', {'a': {'passwd': '********', ...}, ...})`,
		`[('Authorization', 'Bearer x'), ('Accept', '*/*')]`:             `[('Authorization', '********'), ('Accept', '*/*')]`,
		`['password', 'user', 'name']`:                                   `['password', 'user', 'name']`,
		`<User bob password=hunter2>`:                                    `<User bob password=********>`,
		`User(name='bob', password='hunter2')`:                           `User(name='bob', password='********')`,
		`"{'token': 'it\\\'s', 'user': 'bob'}"`:                          `"{'token': '********', 'user': 'bob'}"`,
		`'{\'token\': \'it\\\'s\', \'user\': \'bob\'}'`:                  `'{\'token\': \'********\', \'user\': \'bob\'}'`,
		`'{\'token\': \'cut...'`:                                         `'{\'token\': \'********\''`,
		`{'credentials.password': 'x', 'connection_string': 'y'}`:        `{'credentials.password': '********', 'connection_string': '********'}`,
		`ValueError("no user with password=hunter2 & token=t, x")`:       `ValueError("no user with password=******** & token=********, x")`,
		`CalledProcessError(1, ['mysql', '--password', 'x', '-h', 'y'])`: `CalledProcessError(1, ['mysql', '--password', '********', '-h', 'y'])`,
		`['--password', '-h', 'x']`:                                      `['--password', '-h', 'x']`,
		"{'password':\n 'a b '\n 'c', 'user': 'bob'}":                    "{'password':\n '********', 'user': 'bob'}",
		`login(password="""a"b""", user='bob')`:                          `login(password="********", user='bob')`,
		`{'password': '', 'user': ''}`:                                   `{'password': '', 'user': ''}`,
		// JSON
		`{"password": "hunter2", "n": [1, 2]}`:                  `{"password": "********", "n": [1, 2]}`,
		`{"body": "{\"client_secret\": \"x\\\"y\", \"n\": 1}"}`: `{"body": "{\"client_secret\": \"********\", \"n\": 1}"}`,
		"{\"\\u0070assword\": \"hunter2\", \"passed\": true}":   "{\"\\u0070assword\": \"********\", \"passed\": true}",
		// texts
		"GET / HTTP/1.1\nCookie: a=b; sid=c\nAccept: d":                                      "GET / HTTP/1.1\nCookie: ********\nAccept: d",
		"password: hunter2 is wrong\nnext line":                                              "password: ********\nnext line",
		"GET https://h/x?access_token=abc&y=1 failed":                                        "GET https://h/x?access_token=********&y=1 failed",
		"cannot connect to amqp://user:hunter2@host:5672/v":                                  "cannot connect to amqp://user:********@host:5672/v",
		"my ssn is 078-05-1120, and card 4111 1111 1111 1111.":                               "my ssn is ********, and card ********.",
		"order 4111 1111 1111 1112":                                                          "order 4111 1111 1111 1112",
		"{'ssn': '1'}":                                                                       "{'ssn': '********'}",
		"if password == expected:":                                                           "if password == expected:",
		"-----BEGIN RSA PRIVATE " + "KEY-----\nabc":                                          "********",
		"DefaultEndpointsProtocol=https;AccountName=a;AccountKey=abc/d+e==;EndpointSuffix=h": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=********;EndpointSuffix=h",
		"Endpoint=sb://h/;SharedAccessKeyName=n;SharedAccessKey=abc=":                        "Endpoint=sb://h/;SharedAccessKeyName=********;SharedAccessKey=********",
		// names and values
		`[{'name': 'DB_PASSWORD', 'value': 'x'}, {'name': 'HOST', 'value': 'y'}]`: `[{'name': 'DB_PASSWORD', 'value': '********'}, {'name': 'HOST', 'value': 'y'}]`,
		`{"body": "{\"Key\": \"token\", \"Value\": \"x\"}"}`:                      `{"body": "{\"Key\": \"token\", \"Value\": \"********\"}"}`,
		`{'name': 'password', 'value': ''}`:                                       `{'name': 'password', 'value': ''}`,
		// options of commands
		"mysql --password hunter2 -h y --token=t, --api-key 'a b' z": "mysql --password ******** -h y --token=********, --api-key '********' z",
		`Error('sh -c "x --password hunter2"')`:                      `Error('sh -c "x --password ********"')`,
		"x --password --verbose --token":                             "x --password --verbose --token",
		// neither
		"(1, 2)": "(1, 2)",
		"{'url': 'https://example.com', 'a': 'b@c'}": "{'url': 'https://example.com', 'a': 'b@c'}",
		"KeyError: 'password'":                       "KeyError: 'password'",
		"":                                           "",
	} {
		if got := r.Text(in); got != want {
			t.Errorf("Text(%s)\n got %s\nwant %s", in, got, want)
		}
		if again := r.Text(want); again != want {
			t.Errorf("a second time, Text(%s) = %s", want, again)
		}
	}
}

func TestOptionsInJSON(t *testing.T) {
	t.Parallel()
	got := string(newRedactor(t).JSON("", json.RawMessage(`[["mysql","--password","x","-h","y"],["--token","-v","x"],{"value":"x","type":1,"name":"PASSWORD"}]`)))
	if want := `[["mysql","--password","********","-h","y"],["--token","-v","x"],{"name":"PASSWORD","type":1,"value":"********"}]`; got != want {
		t.Errorf("JSON = %s, want %s", got, want)
	}
}

// TestHostileTextIsReadFewTimes gives texts in which the value of each key seems to reach to the end. What follows once 16 times the
// text was read is masked, so that the length of what comes out tells how much was.
func TestHostileTextIsReadFewTimes(t *testing.T) {
	t.Parallel()
	r := newRedactor(t)
	for _, unit := range []string{`x'password',[`, `'password',{`, `'password',<`, `x'password',(x`, `['password',(`} {
		for _, end := range []string{"", ")x)x", "]x]x"} {
			s := strings.Repeat(unit, 8_000) + strings.Repeat(end, 8_000) + " password=hunter2"
			if got, most := r.Text(s), 50*len(unit); len(got) > most || strings.Contains(got, "hunter2") {
				t.Errorf("%q…%q: %d of %d bytes are shown, want at most %d: %.200s", unit, end, len(got), len(s), most, got)
			}
		}
	}
}

func TestRulesOfTasks(t *testing.T) {
	t.Parallel()
	r := newRedactor(
		t, "task billing.* key iban", "task billing.charge arg 1", "task mail.* all", "task report.* result", "task report.* text Q[1-4]",
	)
	type texts struct{ name, args, kwargs, result string }
	for name, test := range map[string]struct{ in, want texts }{
		"key":        {texts{"billing.x", "()", "{'iban': 'DE1', 'n': 1}", "1"}, texts{"billing.x", "()", "{'iban': '********', 'n': 1}", "1"}},
		"other task": {texts{"shop.x", "('a', 'b')", "{'iban': 'DE1'}", "1"}, texts{"shop.x", "('a', 'b')", "{'iban': 'DE1'}", "1"}},
		"argument":   {texts{"billing.charge", "('a', 'b', 'c')", "{}", ""}, texts{"billing.charge", "('a', '********', 'c')", "{}", ""}},
		"nested":     {texts{"billing.charge", "({'a': (1, 2)}, ['b', 'c'], 3)", "{}", ""}, texts{"billing.charge", "({'a': (1, 2)}, '********', 3)", "{}", ""}},
		"JSON":       {texts{"billing.charge", `["a", "b"]`, "{}", ""}, texts{"billing.charge", `["a", "********"]`, "{}", ""}},
		"cut":        {texts{"billing.charge", `('a', 'b...`, "{}", ""}, texts{"billing.charge", `('a', '********'`, "{}", ""}},
		"unclear":    {texts{"billing.charge", `('a\', 'b')`, "{}", ""}, texts{"billing.charge", `('a\', 'b')`, "{}", ""}},
		"too few":    {texts{"billing.charge", "('a',)", "{}", ""}, texts{"billing.charge", "('a',)", "{}", ""}},
		"all":        {texts{"mail.send", "('a',)", "{}", "'sent'"}, texts{"mail.send", "********", "********", "********"}},
		"result":     {texts{"report.x", "('Q1',)", "{}", "5"}, texts{"report.x", "('********',)", "{}", "********"}},
		"unknown":    {texts{"", "('a', 'b')", "{}", "5"}, texts{"", "********", "********", "********"}},
	} {
		e := state.Event{Kind: state.TaskReceived, Name: test.in.name, Args: test.in.args, Kwargs: test.in.kwargs, Result: test.in.result}
		r.Event(&e, "")
		got := texts{e.Name, e.Args, e.Kwargs, e.Result}
		if name == "unclear" { // what is hidden may be more than the argument
			if strings.Contains(got.args, "'b'") {
				t.Errorf("%s: got %q", name, got)
			}
			continue
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	e := state.Event{Kind: state.TaskSucceeded, Result: "5"}
	r.Event(&e, "shop.x")
	if e.Result != "5" {
		t.Errorf("result of a task whose name is known otherwise = %s, want 5", e.Result)
	}
}

func TestEventsOfWorkersAreRedacted(t *testing.T) {
	t.Parallel()
	e := state.Event{Kind: state.WorkerHeartbeat, Extra: map[string]string{"api_token": `"abc"`, "site": `{"password":"x","n":1}`, "n": "5"}}
	newRedactor(t).Event(&e, "")
	if e.Extra["api_token"] != `"********"` || e.Extra["site"] != `{"n":1,"password":"********"}` || e.Extra["n"] != "5" {
		t.Errorf("fields = %v", e.Extra)
	}
}

func TestJSONIsRedacted(t *testing.T) {
	t.Parallel()
	r := newRedactor(t, "task billing.* arg 0", "task mail.* result")
	for in, want := range map[string]string{
		`{"a":[{"passwo\u0072d":"x","n":1.50}],"b":"token=abc"}`: `{"a":[{"n":1.50,"password":"********"}],"b":"token=********"}`,
		`["authorization","x"]`:                                  `["authorization","********"]`,
		`{"token":{"a":1}}`:                                      `{"token":"********"}`,
		`5`:                                                      `5`,
	} {
		if got := string(r.JSON("shop.x", json.RawMessage(in))); got != want {
			t.Errorf("JSON(%s) = %s, want %s", in, got, want)
		}
	}
	args, kwargs, changed := r.Arguments("billing.charge", json.RawMessage(`["a","b"]`), json.RawMessage(`{"password":"x"}`))
	if string(args) != `["********","b"]` || string(kwargs) != `{"password":"********"}` || !changed {
		t.Errorf("arguments = %s, %s, %t", args, kwargs, changed)
	}
	if _, _, changed := r.Arguments("shop.x", json.RawMessage(`["a"]`), json.RawMessage(`{ "n": 1 }`)); changed {
		t.Error("arguments without secrets are said to be redacted")
	}
	if got := string(r.Result("mail.send", json.RawMessage(`{"a":1}`))); got != `"********"` {
		t.Errorf("result = %s", got)
	}
}

func TestWrongRules(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{
		"", "keys x", "key", "key *", "text", "text (", "text a*", "arg 1", "all", "result", "task", "task x", "task x arg -1", "task x arg y",
		"task x all y", "cards x", "key " + strings.Repeat("x", 1_000),
	} {
		if _, err := redact.New(redact.Options{Rules: []string{rule}}); err == nil {
			t.Errorf("rule %q: no error", rule)
		}
	}
	for _, rule := range redact.Defaults() {
		if _, err := redact.New(redact.Options{NoDefaults: true, Rules: []string{rule}}); err != nil {
			t.Error(err)
		}
	}
	if _, err := redact.ReadRules(strings.NewReader("# comment\n\nkey a\nkeyb")); err == nil || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("error %v, want line 4", err)
	}
	rules, err := redact.ReadRules(strings.NewReader("\ufeffkey a \r\n  task x all\n#"))
	if err != nil || len(rules) != 2 || rules[0] != "key a" || rules[1] != "task x all" {
		t.Errorf("rules %q, error %v", rules, err)
	}
}

func TestWithoutDefaults(t *testing.T) {
	t.Parallel()
	r, err := redact.New(redact.Options{NoDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	const text = "{'password': 'x', 'url': 'amqp://a:b@c'}"
	if got := r.Text(text); got != text {
		t.Errorf("Text = %s", got)
	}
	if got := string(r.Settings(json.RawMessage(`{"password":"x"}`))); got != `{"password":"********"}` {
		t.Errorf("settings of workers without defaults = %s, want them masked nevertheless", got)
	}
}

func TestWhatWasRedactedIsCounted(t *testing.T) {
	t.Parallel()
	r := newRedactor(t, "key ssn")
	for range 3 {
		r.Text("{'ssn': 1, 'password': 'x', 'url': 'amqp://a:b@c'}")
	}
	rules, byForm := r.Status()
	counts := map[string]uint64{}
	for _, rule := range rules {
		counts[rule.Rule] = rule.Redacted
		if rule.Default != (rule.Rule != "key ssn") {
			t.Errorf("rule %s: default = %t", rule.Rule, rule.Default)
		}
	}
	if counts["key ssn"] != 3 || counts["key *password*"] != 3 || counts["key jwt"] != 0 || byForm != 3 {
		t.Errorf("counts = %v and %d by form", counts, byForm)
	}
}
