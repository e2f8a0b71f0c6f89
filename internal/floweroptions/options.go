// Package floweroptions reads the options of Flower 2: its command line, the variables FLOWER_*, and flowerconfig.py
// without executing it. It knows the names, types and order of the options, and what becomes of each in Umbel; it sets
// nothing.
package floweroptions

import "strings"

// Kind is the type of an option.
type Kind int

// The kinds. A value of Texts is a []string, one of Floats a []float64; one of Function is always nil.
const (
	Text Kind = iota
	Int
	Float
	Bool
	Texts
	Floats
	Function
)

// Option is one of Flower.
type Option struct {
	Name string // with underscores
	Kind Kind
	// Variable means that only the environment sets it, as FLOWER_ and its name in upper case.
	Variable bool
	// Effect says in a sentence of Markdown what becomes of it.
	Effect string
	// Ignored means that it has no effect, which a warning says.
	Ignored bool
}

// Options returns all options, in the order of the documentation.
func Options() []Option {
	return []Option{
		{Name: "address", Effect: "The host of `--listen`. Empty means all interfaces if `basic_auth` or `auth_provider` is set (127.0.0.1 in `umbel serve`), and 127.0.0.1 elsewhere."},
		{Name: "port", Kind: Int, Effect: "The port of `--listen`. 0 picks a free one. A value like `tcp://…`, as Kubernetes sets it, is ignored."},
		{Name: "unix_socket", Effect: "`--listen unix:PATH`. The socket has mode 0600; Flower's has 0777."},
		{Name: "url_prefix", Effect: "`--prefix`."},
		{Name: "xheaders", Kind: Bool, Ignored: true, Effect: "Ignored: it would believe headers that any client can write. `X-Forwarded-For` and `X-Forwarded-Proto` of proxies on this machine are believed without it; `--trusted-proxies` names others."},
		{Name: "certfile", Effect: "`--https-cert`. Requires `keyfile`."},
		{Name: "keyfile", Effect: "`--https-key`. Requires `certfile`."},
		{Name: "ca_certs", Effect: "`--https-client-ca`: clients must present a certificate. Requires `certfile` and `keyfile`."},
		{Name: "debug", Kind: Bool, Effect: "`--log-level debug`. Pages never show tracebacks of Umbel itself."},
		{Name: "conf", Effect: "The file that is read as `flowerconfig.py`. `umbel serve` reads none."},
		{Name: "auth", Effect: "`--allow`: whole addresses, in any case. Requires `auth_provider`."},
		{Name: "auth_provider", Effect: "`--sign-in-with`: `flower.views.auth.GoogleAuth2LoginHandler`, `GithubLoginHandler`, `GitLabLoginHandler` and `OktaLoginHandler`. Classes of your own are refused. Requires `auth`."},
		{Name: "basic_auth", Kind: Texts, Effect: "`--basic-auth`. Refused together with `auth_provider`: Flower asks for both, Umbel accepts either."},
		{Name: "oauth2_key", Effect: "`--client-id`."},
		{Name: "oauth2_secret", Effect: "`--client-secret`."},
		{Name: "oauth2_redirect_uri", Effect: "`--redirect-uri`."},
		{Name: "cookie_secret", Ignored: true, Effect: "Ignored: sessions are kept on the server, and their cookies are random."},
		{Name: "read_only", Kind: Bool, Effect: "`--read-only`."},
		{Name: "enable_events", Kind: Bool, Effect: "`--enable-events`."},
		{Name: "inspect_timeout", Kind: Float, Effect: "How long requests of Flower's API wait for the replies of workers, in milliseconds, from 1 s to 1 min. Pages do not wait."},
		{Name: "max_tasks", Kind: Int, Effect: "`--max-tasks`. Older tasks stay in the history; Flower forgets them."},
		{Name: "max_workers", Kind: Int, Ignored: true, Effect: "Ignored: Umbel keeps up to 5,000 workers, which is Flower's default; `--keep-workers` says how long."},
		{Name: "purge_offline_workers", Kind: Int, Effect: "`--keep-workers`, in seconds. `/workers?json=1` leaves them out at once."},
		{Name: "persistent", Kind: Bool, Ignored: true, Effect: "Ignored: the history is always kept. `--data-dir :memory:` keeps none."},
		{Name: "db", Effect: "The history is in the directory `umbel` beside this file, unless `--data-dir` says otherwise. The file itself is a pickle, and not read."},
		{Name: "state_save_interval", Kind: Int, Ignored: true, Effect: "Ignored: every event is saved at once."},
		{Name: "broker_api", Effect: "`--management-url`. Ignored if the broker is not RabbitMQ."},
		{Name: "auto_refresh", Kind: Bool, Ignored: true, Effect: "Ignored: pages update live."},
		{Name: "natural_time", Kind: Bool, Ignored: true, Effect: "Ignored: pages show relative times, and exact ones beside them."},
		{Name: "tasks_columns", Ignored: true, Effect: "Ignored: each visitor chooses columns; a saved view keeps them."},
		{Name: "format_task", Kind: Function, Ignored: true, Effect: "Not executed: rules of redaction remove secrets before anything is stored."},
		{Name: "task_runtime_metric_buckets", Kind: Floats, Effect: "`--runtime-buckets`."},
		{Name: "logging", Effect: "`--log-level`. `none` means `error`."},
		{Name: "log_to_stderr", Kind: Bool, Ignored: true, Effect: "Ignored: the log goes to standard error."},
		{Name: "log_file_prefix", Ignored: true, Effect: "Ignored: the log goes to standard error; redirect it."},
		{Name: "log_file_max_size", Kind: Int, Ignored: true, Effect: logFiles},
		{Name: "log_file_num_backups", Kind: Int, Ignored: true, Effect: logFiles},
		{Name: "log_rotate_when", Ignored: true, Effect: logFiles},
		{Name: "log_rotate_interval", Kind: Int, Ignored: true, Effect: logFiles},
		{Name: "log_rotate_mode", Ignored: true, Effect: logFiles},

		{Name: "unauthenticated_api", Kind: Bool, Variable: true, Effect: "`--flower-api`. Without it and without authentication, the paths of Flower under `/api/` answer 401, as in Flower."},
		{Name: "github_oauth_domain", Variable: true, Effect: "`--issuer`, with GitHub."},
		{Name: "gitlab_oauth_domain", Variable: true, Effect: "`--issuer`, with GitLab."},
		{Name: "gitlab_auth_allowed_groups", Kind: Texts, Variable: true, Effect: "`--require-group`, with GitLab."},
		{Name: "gitlab_min_access_level", Kind: Int, Variable: true, Effect: "`--gitlab-min-access-level`."},
		{Name: "oauth2_okta_base_url", Variable: true, Effect: "`--issuer`, with Okta."},
		{Name: "data_dir", Variable: true, Ignored: true, Effect: "Ignored: it is the working directory of Flower's container. Set `UMBEL_DATA_DIR` for the history."},
	}
}

const logFiles = "Ignored: there are no log files."

// Env returns the variable that sets the option.
func (o Option) Env() string { return "FLOWER_" + strings.ToUpper(o.Name) }

// Flag returns the option as people write it: --inspect-timeout, or $FLOWER_DATA_DIR if only the environment sets it.
func (o Option) Flag() string {
	if o.Variable {
		return "$" + o.Env()
	}
	return "--" + o.Name
}

// find returns the option of a name, in which - stands for _.
func find(options []Option, name string) (Option, bool) {
	name = strings.ReplaceAll(name, "-", "_")
	for _, o := range options {
		if o.Name == name {
			return o, true
		}
	}
	return Option{}, false
}

// names returns the names of the options that the command line and the file take.
func names(options []Option) []string {
	var list []string
	for _, o := range options {
		if !o.Variable {
			list = append(list, o.Name)
		}
	}
	return list
}
