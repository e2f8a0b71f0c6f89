package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/dashboard"
	"github.com/umbelhq/umbel/monitor/broker/redis"
)

// brokerFlags say where the events come from.
type brokerFlags struct {
	BrokerURL       string        `name:"broker-url" env:"UMBEL_BROKER_URL,CELERY_BROKER_URL" placeholder:"URL" help:"The workers' broker_url: amqp://user:password@host/vhost, amqps://, redis://:password@host/0, rediss://, redis+socket:// or sentinel://."`
	BrokerURLFile   string        `name:"broker-url-file" env:"UMBEL_BROKER_URL_FILE" placeholder:"FILE" help:"Read the broker URL from a file, such as a mounted secret."`
	Queue           string        `env:"UMBEL_QUEUE" placeholder:"NAME" help:"RabbitMQ: durable queue that keeps events while Umbel is not running. By default a queue that is deleted with the connection."`
	QueueExpires    time.Duration `env:"UMBEL_QUEUE_EXPIRES" default:"24h" help:"RabbitMQ: delete --queue after this long without a consumer."`
	Management      string        `name:"management-url" env:"UMBEL_MANAGEMENT_URL" placeholder:"URL" help:"RabbitMQ: the management API, http://user:password@host:15672, for rates and unacknowledged messages of queues."`
	ManagementFile  string        `name:"management-url-file" env:"UMBEL_MANAGEMENT_URL_FILE" placeholder:"FILE" help:"RabbitMQ: read the management URL from a file."`
	EventExchange   string        `env:"UMBEL_EVENT_EXCHANGE" default:"celeryev" help:"Celery's event_exchange."`
	ControlExchange string        `env:"UMBEL_CONTROL_EXCHANGE" default:"celery" help:"Celery's control_exchange."`
	CAFile          string        `name:"tls-ca" env:"UMBEL_TLS_CA" placeholder:"FILE" help:"Certificates (PEM) to trust for amqps, rediss and sentinel."`
	CertFile        string        `name:"tls-cert" env:"UMBEL_TLS_CERT" placeholder:"FILE" help:"Client certificate (PEM)."`
	KeyFile         string        `name:"tls-key" env:"UMBEL_TLS_KEY" placeholder:"FILE" help:"Key (PEM) of the client certificate."`
	ServerName      string        `name:"tls-server-name" env:"UMBEL_TLS_SERVER_NAME" placeholder:"NAME" help:"Name in the broker's certificate, if it is not the host of the URL."`
	Insecure        bool          `name:"tls-insecure" env:"UMBEL_TLS_INSECURE" help:"Do not verify the broker's certificate."`
	Redis           redisFlags    `prefix:"redis-"`
}

// redisFlags repeat Celery's broker_transport_options, which nothing on the wire tells.
type redisFlags struct {
	Master            string        `env:"UMBEL_REDIS_MASTER" placeholder:"NAME" help:"Sentinel: master_name of the workers' broker_transport_options."`
	SentinelUser      string        `env:"UMBEL_REDIS_SENTINEL_USER" placeholder:"NAME" help:"User for the sentinels."`
	SentinelPassword  string        `env:"UMBEL_REDIS_SENTINEL_PASSWORD" placeholder:"WORD" help:"Password for the sentinels."`
	KeyPrefix         string        `env:"UMBEL_REDIS_KEY_PREFIX" placeholder:"TEXT" help:"global_keyprefix of the workers' broker_transport_options."`
	FanoutPrefix      string        `env:"UMBEL_REDIS_FANOUT_PREFIX" placeholder:"TEXT" help:"fanout_prefix, if not /{db}. (none for False)."`
	NoFanoutPatterns  bool          `env:"UMBEL_REDIS_NO_FANOUT_PATTERNS" help:"fanout_patterns is False."`
	Separator         string        `env:"UMBEL_REDIS_SEPARATOR" placeholder:"TEXT" help:"sep, if not the bytes 06 16."`
	PrioritySteps     []int         `env:"UMBEL_REDIS_PRIORITY_STEPS" placeholder:"N" help:"priority_steps, if not 0,3,6,9."`
	UnackedKey        string        `env:"UMBEL_REDIS_UNACKED_KEY" placeholder:"NAME" help:"unacked_key, if not unacked."`
	UnackedIndexKey   string        `env:"UMBEL_REDIS_UNACKED_INDEX_KEY" placeholder:"NAME" help:"unacked_index_key, if not unacked_index."`
	VisibilityTimeout time.Duration `env:"UMBEL_REDIS_VISIBILITY_TIMEOUT" placeholder:"TIME" help:"visibility_timeout, if not 1h."`
}

// options turns the flags into the broker's part of dashboard.Options. Its error names the flag that is wrong.
func (f *brokerFlags) options() (dashboard.Options, error) {
	o := dashboard.Options{Version: versionString()}
	url, source, err := secret("--broker-url", f.BrokerURL, f.BrokerURLFile)
	if err != nil {
		return o, err
	}
	o.BrokerURL = url
	management, managementSource, err := secret("--management-url", f.Management, f.ManagementFile)
	if err != nil {
		return o, err
	}
	if o.BrokerURL == "" {
		return o, usageError{errors.New(
			"--broker-url is missing: give it the workers' broker_url, or set UMBEL_BROKER_URL or CELERY_BROKER_URL")}
	}
	steps := []step{
		{source, func() { o.Redis.MasterName = f.Redis.Master }}, // a list of sentinels is nothing without it
		{"--queue", func() { o.Queue = f.Queue }},
		{"--queue-expires", func() { o.QueueExpires = f.QueueExpires }},
		{"--event-exchange", func() { o.Exchange = f.EventExchange }},
		{"--control-exchange", func() { o.ControlExchange = f.ControlExchange }},
		{"--tls-ca", func() { o.TLS.CAFile = f.CAFile }},
		{"--tls-cert, --tls-key", func() { o.TLS.CertFile, o.TLS.KeyFile = f.CertFile, f.KeyFile }},
		{"--tls-server-name", func() { o.TLS.ServerName = f.ServerName }},
		{"--tls-insecure", func() { o.TLS.InsecureSkipVerify = f.Insecure }},
		{managementSource, func() { o.ManagementURL = management }},
	}
	for _, step := range append(steps, f.Redis.steps(&o.Redis)...) {
		step.set()
		if _, err := dashboard.Broker(o); err != nil {
			return o, usageError{fmt.Errorf("%s: %w", step.flag, err)}
		}
	}
	return o, nil
}

// step sets an option that a flag is for.
type step struct {
	flag string
	set  func()
}

func (f *redisFlags) steps(o *redis.Options) []step {
	return []step{
		{"--redis-sentinel-user, --redis-sentinel-password", func() {
			o.SentinelUsername, o.SentinelPassword = f.SentinelUser, f.SentinelPassword
		}},
		{"--redis-key-prefix", func() { o.KeyPrefix = f.KeyPrefix }},
		{"--redis-fanout-prefix", func() { o.FanoutPrefix = fanoutPrefix(f.FanoutPrefix) }},
		{"--redis-no-fanout-patterns", func() { o.NoFanoutPatterns = f.NoFanoutPatterns }},
		{"--redis-separator", func() { o.Separator = f.Separator }},
		{"--redis-priority-steps", func() { o.PrioritySteps = f.PrioritySteps }},
		{"--redis-unacked-key, --redis-unacked-index-key", func() {
			o.UnackedKey, o.UnackedIndexKey = f.UnackedKey, f.UnackedIndexKey
		}},
		{"--redis-visibility-timeout", func() { o.VisibilityTimeout = f.VisibilityTimeout }},
	}
}

// secret returns the value of a flag that may be read from a file instead, and the flag that it is from.
func secret(flag, value, file string) (text, source string, err error) {
	if file == "" {
		return value, flag, nil
	}
	source = flag + "-file"
	b, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if err != nil {
		return "", source, usageError{fmt.Errorf("%s: %w", source, err)}
	}
	return strings.TrimSpace(string(b)), source, nil
}

// fanoutPrefix reads Python's False as people write it.
func fanoutPrefix(text string) string {
	if strings.EqualFold(text, "none") || strings.EqualFold(text, "false") {
		return redis.NoFanoutPrefix
	}
	return text
}
