package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/umbelhq/umbel"
)

// brokerFlags say where the events come from.
type brokerFlags struct {
	BrokerURL       string        `name:"broker-url" env:"UMBEL_BROKER_URL,CELERY_BROKER_URL" placeholder:"URL" help:"The workers' broker_url: amqp://user:password@host/vhost or amqps://."`
	BrokerURLFile   string        `name:"broker-url-file" env:"UMBEL_BROKER_URL_FILE" placeholder:"FILE" help:"Read the broker URL from a file, such as a mounted secret."`
	Queue           string        `env:"UMBEL_QUEUE" placeholder:"NAME" help:"Durable queue that keeps events while Umbel is away. Default: a queue that goes with the connection."`
	QueueExpires    time.Duration `env:"UMBEL_QUEUE_EXPIRES" default:"24h" help:"How long the broker keeps --queue unread."`
	EventExchange   string        `env:"UMBEL_EVENT_EXCHANGE" default:"celeryev" help:"Celery's event_exchange."`
	ControlExchange string        `env:"UMBEL_CONTROL_EXCHANGE" default:"celery" help:"Celery's control_exchange."`
	CAFile          string        `name:"tls-ca" env:"UMBEL_TLS_CA" placeholder:"FILE" help:"Certificates (PEM) to trust for amqps."`
	CertFile        string        `name:"tls-cert" env:"UMBEL_TLS_CERT" placeholder:"FILE" help:"Client certificate (PEM) for amqps."`
	KeyFile         string        `name:"tls-key" env:"UMBEL_TLS_KEY" placeholder:"FILE" help:"Key (PEM) of the client certificate."`
	ServerName      string        `name:"tls-server-name" env:"UMBEL_TLS_SERVER_NAME" placeholder:"NAME" help:"Name that the broker's certificate must be for, if not the URL's host."`
	Insecure        bool          `name:"tls-insecure" env:"UMBEL_TLS_INSECURE" help:"Do not verify the broker's certificate."`
}

// options turns the flags into the broker's part of umbel.Options. Its error names the flag that is wrong.
func (f *brokerFlags) options() (umbel.Options, error) {
	o := umbel.Options{BrokerURL: f.BrokerURL, Version: versionString()}
	source := "--broker-url"
	if f.BrokerURLFile != "" {
		source = "--broker-url-file"
		b, err := os.ReadFile(f.BrokerURLFile)
		if err != nil {
			return o, usageError{fmt.Errorf("%s: %w", source, err)}
		}
		o.BrokerURL = strings.TrimSpace(string(b))
	}
	if o.BrokerURL == "" {
		return o, usageError{errors.New(
			"--broker-url is missing: give it the workers' broker_url, or set UMBEL_BROKER_URL or CELERY_BROKER_URL")}
	}
	for _, step := range []struct {
		flag string
		set  func()
	}{
		{source, func() {}},
		{"--queue", func() { o.Queue = f.Queue }},
		{"--queue-expires", func() { o.QueueExpires = f.QueueExpires }},
		{"--event-exchange", func() { o.Exchange = f.EventExchange }},
		{"--control-exchange", func() { o.ControlExchange = f.ControlExchange }},
		{"--tls-ca", func() { o.TLS.CAFile = f.CAFile }},
		{"--tls-cert, --tls-key", func() { o.TLS.CertFile, o.TLS.KeyFile = f.CertFile, f.KeyFile }},
		{"--tls-server-name", func() { o.TLS.ServerName = f.ServerName }},
		{"--tls-insecure", func() { o.TLS.InsecureSkipVerify = f.Insecure }},
	} {
		step.set()
		if _, err := umbel.Dial(o); err != nil {
			return o, usageError{fmt.Errorf("%s: %w", step.flag, err)}
		}
	}
	return o, nil
}
