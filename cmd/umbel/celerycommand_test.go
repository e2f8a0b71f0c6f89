package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/internal/testenv"
)

// celeryCommand prepares celery -A tasks umbel in an environment with Celery and the wheel.
func celeryCommand(t *testing.T, c *cluster, args ...string) *dashboard {
	t.Helper()
	i := install(t)
	packages := strings.TrimSpace(execute(t, testenv.Python(t), "-c", "import celery, os; print(os.path.dirname(os.path.dirname(celery.__file__)))"))
	cmd := command(c.env, i.python, append([]string{"-m", "celery", "-A", "tasks", "umbel"}, args...)...)
	cmd.Env = append(cmd.Env, "PYTHONPATH="+c.dir+string(filepath.ListSeparator)+packages)
	cmd.Dir = c.dir
	return startProgram(t, cmd)
}

// celery -A tasks umbel watches the broker of the app, reads its result backend and shows its locks. What it was started
// with does not show the broker's URL.
func TestEndToEndCeleryCommand(t *testing.T) {
	t.Parallel()
	for name, newBroker := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, newBroker(t))
			c.work(t, "of-the-app@test", "celery", "-P", "solo", "-E")
			d := celeryCommand(t, c)
			d.connected(t)
			if line, err := os.ReadFile("/proc/" + strconv.Itoa(d.cmd.Process.Pid) + "/cmdline"); err == nil && strings.Contains(string(line), "://") {
				t.Errorf("its command line is %q", line)
			}
			g := newGate(t)
			g.open(t)
			id := c.do(t, clientCall{Call: "hold_idempotently", Kwargs: map[string]any{"path": string(g)}})[0]
			if got := d.outcome(t, id, "SUCCESS"); got != "'held'" {
				t.Errorf("result = %s, want 'held'", got)
			}
			d.awaitLock(t, id, "completed ended")
			if status, body := d.fetch(t, "api/v1/results/"+id); !strings.Contains(string(body), "held") {
				t.Errorf("stored result = %d %s", status, body)
			}
		})
	}
}

// appSettings are settings of an app, and what Umbel is told of them.
type appSettings struct {
	settings    string // Python
	variables   map[string]string
	warnings    []string
	unsupported string
	other       string // variables that the settings do not decide
}

func appSettingsCases() map[string]appSettings {
	return map[string]appSettings{
		"none": {settings: `{}`, variables: vars("BROKER_URL", "amqp://")},
		"failover, with characters that are not encoded": {
			settings:  `{"broker_url": ["amqp://u:p%40s@a//", "amqp://b/v"]}`,
			variables: vars("BROKER_URL", "amqp://u:p%40s@a//;amqp://b/v"),
		},
		"parts of a URL": {
			settings:  `{"broker_url": "localhost", "broker_user": "me", "broker_password": "a/b", "broker_port": 5673, "broker_vhost": "shop"}`,
			variables: vars("BROKER_URL", "amqp://me:a%2Fb@localhost:5673/shop"),
		},
		"TLS of RabbitMQ": {
			settings: `{"broker_url": "amqp://a;amqp://b", "broker_use_ssl": {"ca_certs": "/ca & co.pem", "certfile": "c.pem", "keyfile": "k.pem", "cert_reqs": ssl.CERT_REQUIRED, "server_hostname": "rabbit"}}`,
			variables: vars("BROKER_URL", "amqp://a?ssl_ca_certs=%2Fca%20%26%20co.pem&ssl_certfile=c.pem&ssl_keyfile=k.pem&ssl_cert_reqs=required&ssl_server_hostname=rabbit;"+
				"amqp://b?ssl_ca_certs=%2Fca%20%26%20co.pem&ssl_certfile=c.pem&ssl_keyfile=k.pem&ssl_cert_reqs=required&ssl_server_hostname=rabbit"),
			other: "files",
		},
		"TLS without options": {
			settings: `{"broker_url": "amqp://a", "broker_use_ssl": True}`, variables: vars("BROKER_URL", "amqp://a?ssl=true"),
		},
		"TLS of Redis": {
			settings:  `{"broker_url": "redis://a/1", "broker_use_ssl": {"ssl_cert_reqs": ssl.CERT_NONE, "ssl_ciphers": "x"}}`,
			variables: vars("BROKER_URL", "redis://a/1?ssl_cert_reqs=none"),
			warnings:  []string{"broker_use_ssl has ssl_ciphers, which Umbel has no option for"},
		},
		"options of Redis": {
			settings: `{"broker_url": "redis://a", "broker_transport_options": {"global_keyprefix": "p:", "fanout_prefix": False, "fanout_patterns": False, ` +
				`"sep": ":", "priority_steps": [0, 5], "visibility_timeout": 43200, "unacked_key": "u", "unacked_index_key": "ui", "socket_timeout": 3, "colour": 1}}`,
			variables: vars("BROKER_URL", "redis://a", "REDIS_KEY_PREFIX", "p:", "REDIS_FANOUT_PREFIX", "none", "REDIS_NO_FANOUT_PATTERNS", "true",
				"REDIS_SEPARATOR", ":", "REDIS_PRIORITY_STEPS", "0,5", "REDIS_VISIBILITY_TIMEOUT", "43200.000000s", "REDIS_UNACKED_KEY", "u", "REDIS_UNACKED_INDEX_KEY", "ui"),
			warnings: []string{"broker_transport_options has colour, which Umbel has no option for"},
		},
		"sentinels of everything": {
			settings: `{"broker_url": "sentinel://:pw@a:26379/2;sentinel://b", "broker_transport_options": {"master_name": "main", "sentinel_kwargs": {"username": "s", "password": "t", "socket_timeout": 1}},` +
				` "result_backend": "sentinel://c", "result_backend_transport_options": {"master_name": "other", "global_keyprefix": "r", "sentinel_kwargs": {"password": "w"}},` +
				` "idempotency_redis_url": "sentinel://d", "idempotency_transport_options": {"master_name": "third"}}`,
			variables: vars("BROKER_URL", "sentinel://:pw@a:26379/2;sentinel://b", "REDIS_MASTER", "main", "REDIS_SENTINEL_USER", "s", "REDIS_SENTINEL_PASSWORD", "t",
				"RESULT_BACKEND", "sentinel://c", "RESULT_MASTER", "other", "RESULT_KEY_PREFIX", "r", "RESULT_SENTINEL_PASSWORD", "w", "LOCKS_URL", "sentinel://d", "LOCKS_MASTER", "third"),
		},
		"exchanges": {
			settings:  `{"broker_url": "amqp://a", "event_exchange": "ev", "control_exchange": "ctl"}`,
			variables: vars("BROKER_URL", "amqp://a", "EVENT_EXCHANGE", "ev", "CONTROL_EXCHANGE", "ctl"),
		},
		"two brokers": {
			settings:  `{"broker_read_url": "amqp://a", "broker_write_url": "amqp://b"}`,
			variables: vars("BROKER_URL", "amqp://a"),
			warnings:  []string{"broker_read_url and broker_write_url differ: Umbel uses broker_read_url for both"},
		},
		"results in Redis": {
			settings:  `{"result_backend": "rediss://a/1", "redis_password": "p@w", "redis_backend_use_ssl": {"ssl_cert_reqs": "CERT_REQUIRED", "ssl_check_hostname": False}}`,
			variables: vars("BROKER_URL", "amqp://", "RESULT_BACKEND", "rediss://:p%40w@a/1?ssl_cert_reqs=required&ssl_check_hostname=false"),
		},
		"results in a database": {
			settings:  `{"result_backend": "db+postgresql://u:p@h/n", "database_table_names": {"task": "t"}, "database_table_schemas": {"task": "s"}}`,
			variables: vars("BROKER_URL", "amqp://", "RESULT_BACKEND", "db+postgresql://u:p@h/n", "RESULT_TABLE", "s.t"),
		},
		"results elsewhere": {
			settings:  `{"result_backend": "cache+memcached://h"}`,
			variables: vars("BROKER_URL", "amqp://"),
			warnings:  []string{"the result backend is cache+memcached://, which Umbel cannot read: it shows what events tell of results"},
		},
		"locks": {
			settings:  `{"idempotency_redis_url": "redis://h/2", "idempotency_key_prefix": "a,[b]:", "idempotency_lock_ttl": 60, "idempotency_completion_ttl": 0.5}`,
			variables: vars("BROKER_URL", "amqp://", "LOCKS_URL", "redis://h/2", "LOCKS_PATTERN", `"a,\[b\]:lock:celery:exec:*",lock:celery:exec:*,qo_*,celery_singleton_*,SINGLETONLOCK_*`, "LOCKS_TTL", "60.000000s", "LOCKS_COMPLETION_TTL", "0.500000s"),
		},
		"what was said otherwise": {
			settings:  `{"broker_url": "sqs://", "result_backend": "rpc://", "_args": ["--broker-url=amqp://h"], "_environ": ["UMBEL_RESULT_BACKEND_FILE", "BROKER_URL"]}`,
			variables: map[string]string{}, other: "broker",
		},
		"no broker of ours": {settings: `{"broker_url": "sqs://"}`, unsupported: "the broker is sqs://, and Umbel watches RabbitMQ and Redis only"},
		"a login of another kind": {
			settings:    `{"broker_url": "amqp://a", "broker_login_method": "EXTERNAL"}`,
			unsupported: "broker_login_method is EXTERNAL, and Umbel logs in to RabbitMQ with user and password only",
		},
		"a provider of passwords": {
			settings:    `{"broker_url": "redis://a?credential_provider=x.Y"}`,
			unsupported: "the broker's password comes from a credential_provider, which Umbel cannot call: set UMBEL_BROKER_URL",
		},
		"events in pickle": {
			settings: `{"event_serializer": "pickle"}`, variables: vars("BROKER_URL", "amqp://"),
			warnings: []string{"event_serializer is pickle, which Umbel does not decode: it will show no events"},
		},
	}
}

// vars are variables without UMBEL_, with the exchanges that Celery's settings always name.
func vars(pairs ...string) map[string]string {
	m := map[string]string{"UMBEL_EVENT_EXCHANGE": "celeryev", "UMBEL_CONTROL_EXCHANGE": "celery"}
	for i := 0; i < len(pairs); i += 2 {
		m["UMBEL_"+pairs[i]] = pairs[i+1]
	}
	return m
}

// The settings of an app become variables that umbel serve accepts, and what it has no variable for is said.
func TestCeleryCommandReadsSettings(t *testing.T) {
	t.Parallel()
	cases := appSettingsCases()
	var names []string
	var in strings.Builder
	for name, c := range cases {
		names = append(names, name)
		in.WriteString(c.settings + "\n")
	}
	cmd := command([]string{"PYTHONPATH=../../python", "PYTHONDONTWRITEBYTECODE=1"}, testenv.Python(t), "testdata/wheel/settings.py")
	cmd.Stdin, cmd.Stderr = strings.NewReader(in.String()), t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(strings.NewReader(string(out)))
	for _, name := range names {
		var got struct {
			Variables   map[string]string
			Warnings    []string
			Unsupported string
		}
		if err := answers.Decode(&got); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := cases[name]
			if diff := cmp.Diff(c.variables, got.Variables); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			if len(c.warnings)+len(got.Warnings) > 0 {
				if diff := cmp.Diff(c.warnings, got.Warnings); diff != "" {
					t.Errorf("warnings (-want +got):\n%s", diff)
				}
			}
			if got.Unsupported != c.unsupported {
				t.Errorf("unsupported = %q, want %q", got.Unsupported, c.unsupported)
			}
			if c.unsupported != "" || c.other != "" {
				return
			}
			var env []string
			for k, v := range got.Variables {
				env = append(env, k+"="+v)
			}
			// The broker and the rest are checked before this flag, which is wrong.
			if _, _, complaint := once(t, env, nil, "serve", "--max-tasks", "0"); !strings.Contains(complaint, "--max-tasks") {
				t.Errorf("umbel serve says %s", complaint)
			}
		})
	}
}
