package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"

	"github.com/umbelhq/umbel/monitor/idempotency"
)

// fingerprintCmd prints the key of the lock of a call.
type fingerprintCmd struct {
	Kwargs    string   `default:"{}" placeholder:"JSON" help:"Keyword arguments as an object; - is standard input."`
	Args      string   `default:"[]" placeholder:"JSON" help:"Positional arguments as an array; - is standard input."`
	Only      paths    `placeholder:"FIELD" help:"Only this field counts, such as order.id, lines[*].sku or [0]; may be repeated."`
	Without   paths    `placeholder:"FIELD" help:"This field does not count; may be repeated."`
	Precision decimals `placeholder:"N" help:"Round floats to this number of decimals, 0 to 15."`
}

// paths is a flag that may be repeated. Paths may hold commas.
type paths []string

// UnmarshalText implements encoding.TextUnmarshaler.
//
//nolint:unparam // the interface has an error
func (p *paths) UnmarshalText(text []byte) error {
	*p = append(*p, string(text))
	return nil
}

// decimals is a number that may be absent.
type decimals struct{ n *int }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *decimals) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return errors.New("must be a number")
	}
	d.n = &n
	return nil
}

// Run prints one line.
func (c *fingerprintCmd) Run(_ context.Context, s streams, _ *slog.Logger) error {
	if len(s.args) == 0 {
		return usageError{errors.New("fingerprint needs the name of a task")}
	}
	if c.Args == "-" && c.Kwargs == "-" {
		return usageError{errors.New("only one of --args and --kwargs can be standard input")}
	}
	f, err := idempotency.New(idempotency.Options{Only: c.Only, Without: c.Without, Precision: c.Precision.n})
	if err != nil {
		return usageError{err}
	}
	args, err := readValue("--args", c.Args, s.in)
	if err != nil {
		return err
	}
	kwargs, err := readValue("--kwargs", c.Kwargs, s.in)
	if err != nil {
		return err
	}
	fingerprint, err := f.Call(s.args[0], args, kwargs)
	if err != nil {
		return usageError{fmt.Errorf("--%w", err)} // it begins with args or kwargs
	}
	_, err = fmt.Fprintln(s.out, idempotency.KeyPrefix+fingerprint)
	return err
}

// readValue parses what a flag says, or standard input.
func readValue(flag, text string, in io.Reader) (idempotency.Value, error) {
	b := []byte(text)
	if text == "-" {
		var err error
		if b, err = io.ReadAll(io.LimitReader(in, idempotency.MaxBytes+1)); err != nil {
			return idempotency.Value{}, fmt.Errorf("read standard input: %w", err)
		}
	}
	v, err := idempotency.Parse(b)
	if err != nil {
		return v, usageError{fmt.Errorf("%s: %w", flag, err)}
	}
	return v, nil
}
