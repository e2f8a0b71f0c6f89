package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/umbelhq/umbel/monitor/redact"
)

// redactFlags say which secrets are taken out of what Umbel reads.
type redactFlags struct {
	Redact         []string `env:"UMBEL_REDACT" placeholder:"RULE" help:"Redact what a rule names, beside the usual secrets: key NAME, text EXPRESSION, cards, or, after task NAME, also arg POSITION, args, kwargs, result, error or all. Rules with commas go into --redact-file."`
	RedactFile     string   `env:"UMBEL_REDACT_FILE" placeholder:"FILE" help:"Read such rules from a file, one a line."`
	RedactDefaults bool     `env:"UMBEL_REDACT_DEFAULTS" default:"true" negatable:"" help:"Redact the usual secrets: passwords, tokens, keys, cookies, and more."`
}

// options returns the rules, checked.
func (f *redactFlags) options() (redact.Options, error) {
	o := redact.Options{NoDefaults: !f.RedactDefaults, Rules: f.Redact}
	if _, err := redact.New(o); err != nil {
		return o, usageError{fmt.Errorf("--redact: %w", err)}
	}
	if f.RedactFile == "" {
		return o, nil
	}
	file, err := os.Open(f.RedactFile)
	if err != nil {
		return o, usageError{fmt.Errorf("--redact-file: %w", err)}
	}
	defer file.Close() //nolint:errcheck // only read
	rules, err := redact.ReadRules(file)
	if err == nil {
		o.Rules = append(slices.Clip(o.Rules), rules...)
		_, err = redact.New(o)
	}
	if err != nil {
		return o, usageError{fmt.Errorf("--redact-file %s: %w", f.RedactFile, err)}
	}
	return o, nil
}
