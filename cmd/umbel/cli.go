package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
)

// cli is the command line. Every flag has an environment variable, UMBEL_ and its name.
type cli struct {
	Serve   serveCmd   `cmd:"" default:"withargs" help:"Watch a cluster and serve its dashboard (default)."`
	Demo    demoCmd    `cmd:"" help:"Serve the dashboard of a simulated cluster. Needs no broker."`
	Replay  replayCmd  `cmd:"" help:"Apply recorded events and print the resulting state as JSON."`
	Capture captureCmd `cmd:"" help:"Print raw events from the broker, one per line, for replay."`
	Tasks   tasksCmd   `cmd:"" help:"List tasks in the history that match a query."`
	Prune   pruneCmd   `cmd:"" help:"Remove expired history. The server must not be running."`
	Repair  repairCmd  `cmd:"" help:"Recover a damaged history. The server must not be running."`
	Outbox  outboxCmd  `cmd:"" help:"Show commands in the outbox and the audit log."`
	Version bool       `help:"Print the version and exit."`

	LogLevel  string `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error." env:"UMBEL_LOG_LEVEL" placeholder:"LEVEL"`
	LogFormat string `default:"text" enum:"text,json" help:"text or json." env:"UMBEL_LOG_FORMAT"`
}

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// usageError is invalid usage: exit status 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run executes the command line and returns the exit status: 0 done, 1 failed, 2 invalid usage.
func run(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) int {
	var c cli
	if len(args) > 0 && args[0] == "version" {
		args = []string{"--version"}
	}
	command, help, err := newCommand("umbel", "The live dashboard for Celery.", nil, &c).parse(args)
	switch {
	case c.Version:
		_, err = fmt.Fprintln(out, "umbel", versionString())
	case err != nil:
		complain(stderr, err)
		return 2
	case help:
		err = command.writeHelp(out)
	default:
		err = execute(ctx, command.target, streams{in, out, stderr}, c.logger(stderr))
	}
	if err == nil {
		return 0
	}
	complain(stderr, err)
	if _, usage := errors.AsType[usageError](err); usage {
		return 2
	}
	return 1
}

// execute runs a command with what its Run takes.
func execute(ctx context.Context, command any, s streams, log *slog.Logger) error {
	switch c := command.(type) {
	case interface {
		Run(ctx context.Context, s streams, log *slog.Logger) error
	}:
		return c.Run(ctx, s, log)
	case interface {
		Run(ctx context.Context, log *slog.Logger) error
	}:
		return c.Run(ctx, log)
	case interface{ Run(s streams) error }:
		return c.Run(s)
	}
	panic(fmt.Sprintf("%T is not a command", command))
}

// complain says in one line what is wrong.
func complain(w io.Writer, err error) { _, _ = fmt.Fprintf(w, "umbel: %v\n", err) }

func (c *cli) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // the parser has checked it
	o := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// versionString is the linker's version, else the module's.
func versionString() string {
	if version != "" {
		return strings.TrimPrefix(version, "v")
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "unknown"
}
