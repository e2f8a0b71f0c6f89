package main

import (
	"fmt"
	"os"

	"github.com/umbelhq/umbel/monitor/alert/receivers"
)

// alertFlags say who is told of alerts.
type alertFlags struct {
	AlertReceivers string `env:"UMBEL_ALERT_RECEIVERS" placeholder:"FILE" help:"Read who is told of alerts from a YAML file: webhooks, chats, mail addresses, commands. It holds secrets; pages cannot change it."`
}

// receivers returns what the file says.
func (f *alertFlags) receivers() (receivers.Config, error) {
	if f.AlertReceivers == "" {
		return receivers.Config{}, nil
	}
	file, err := os.Open(f.AlertReceivers)
	if err != nil {
		return receivers.Config{}, usageError{fmt.Errorf("--alert-receivers: %w", err)}
	}
	defer file.Close() //nolint:errcheck // only read
	c, err := receivers.Read(file)
	if err != nil {
		return c, usageError{fmt.Errorf("--alert-receivers %s: %w", f.AlertReceivers, err)}
	}
	return c, nil
}
