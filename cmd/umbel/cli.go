package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// globals are the flags of every command.
type globals struct {
	Version   bool   `help:"Print the version and exit."`
	LogLevel  string `default:"info" enum:"debug,info,warn,error" help:"debug, info, warn or error." env:"UMBEL_LOG_LEVEL" placeholder:"LEVEL"`
	LogFormat string `default:"text" enum:"text,json" help:"text or json." env:"UMBEL_LOG_FORMAT" placeholder:"FORMAT"`
}

// command is one of the command line. Its fields are its flags.
type command struct {
	name, args, help string
	runner
}

type runner interface {
	Run(ctx context.Context, s streams, log *slog.Logger) error
}

// commands returns them all. The first one runs if none is named.
func commands() []command {
	return []command{
		{"serve", "", "Watch a cluster and serve its dashboard (default).", &serveCmd{}},
		{"flower", "", "Watch a cluster with the options of Flower: those of its command line, FLOWER_* and flowerconfig.py.\n" +
			"Options of celery may precede it: umbel -b URL flower --port=5566. docs/flower-options.md lists them all; the flags\n" +
			"of serve work too.", &flowerCmd{}},
		{"demo", "", "Serve the dashboard of a simulated cluster. Needs no broker.", &demoCmd{}},
		{"replay", "<file>", "Apply recorded events and print the resulting state as JSON, or say what a trace holds.\n" +
			"The file is a trace, or has one raw event per line, in order of arrival; - is standard input.", &replayCmd{}},
		{"capture", "", "Print raw events from the broker, one per line, for replay.", &captureCmd{}},
		{"tasks", "[query ...]", "List tasks in the history that match a query.\n" +
			"A query is like 'state:failure name:billing.* run:>2s'. Put -- before a query that begins with -.", &tasksCmd{}},
		{"fingerprint", "<task>", "Print the key of the lock of a call: lock:, and the fingerprint of its arguments.\n" +
			"Calls with the same key are the same call. It is what Python computes from json.dumps(kwargs, sort_keys=True,\n" +
			"separators=(\",\", \":\")).", &fingerprintCmd{}},
		{"prune", "", "Remove expired history. The server must not be running.", &pruneCmd{}},
		{"history copy", "<from> [to]", "Copy the history of a data directory to PostgreSQL, such as postgres://user:password@host/database.\n" +
			"The server must not be running. What was interrupted goes on where it ended.", &historyCopyCmd{}},
		{"redact", "", "Count what the rules of redaction would change in the history; the server may be running.\n" +
			"With --rewrite, redact it. The server must not be running then.", &redactCmd{}},
		{"repair", "[file]", "Recover a damaged history. The server must not be running.\n" +
			"Without a file, all damaged ones in the data directory are recovered.", &repairCmd{}},
		{"simulate mutex", "", "Simulate processes that share a lock by Lamport's algorithm, and check that it excludes.\n" +
			"Exit status 1 means that an invariant broke; the shortest schedule that breaks one is printed.", &simulateMutexCmd{}},
		{"healthcheck", "", "Exit with status 0 if the server responds, as container runtimes ask.", &healthcheckCmd{}},
		{"status", "", "Say whether work is flowing, and why, as a running Umbel concludes.\n" +
			"Exit status 0 means that it is, 1 that it is degraded or stuck, 2 that nobody knows: Umbel cannot be reached, or has\n" +
			"not heard enough.", &statusCmd{}},
		{"top", "", "Show workers, queues and task types of a running Umbel as they change; q quits.\n" +
			"Where standard output is no terminal, they are printed once, all of them.", &topCmd{}},
		{"tail", "[query ...]", "Print tasks that match a query as they change, as a running Umbel learns it, one line each.\n" +
			"A query is like 'state:failure name:billing.*'. Put -- before a query that begins with -.", &tailCmd{}},
		{"mark", "<text>", "Mark a deploy: charts and groups of failures of a running Umbel show it.\n" +
			"A CI job calls it with the version: umbel mark v2.3.1", &markCmd{}},
		{"mcp", "", "Let an assistant read a running Umbel by the Model Context Protocol, over standard input and output.\n" +
			"It has the rights of the token and changes nothing. Assistants that speak HTTP need no command: they use URL/mcp.", &mcpCmd{}},
		{"token create", "", "Make an API token and print it. The server must not be running.", &tokenCreateCmd{}},
		{"token list", "", "List API tokens, without their secrets.", &tokenListCmd{}},
		{"token revoke", "<id>", "Revoke an API token. The server must not be running.", &tokenRevokeCmd{}},
		{"outbox stats", "", "Show the number of commands in the outbox by state, and errors.", &outboxStatsCmd{}},
		{"outbox audit", "", "List or verify the audit log.", &outboxAuditCmd{}},
	}
}

// streams are what a command is given, and where it reads and writes.
type streams struct {
	args     []string // of the command, without flags
	in       io.Reader
	out, err io.Writer
}

// exitError ends a command that has already said why.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usageError is invalid usage: exit status 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run executes the command line and returns the exit status: 0 done, 1 failed, 2 invalid usage.
func run(ctx context.Context, args []string, in io.Reader, out, stderr io.Writer) int {
	var g globals
	c, fs, err := parse(args, &g)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		err = writeHelp(out, c, fs)
	case err != nil:
		complain(stderr, err)
		return 2
	case g.Version:
		_, err = fmt.Fprintln(out, "umbel", versionString())
	default:
		err = c.Run(ctx, streams{fs.Args(), in, out, stderr}, g.logger(stderr))
	}
	if err == nil {
		return 0
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		return int(exit)
	}
	complain(stderr, err)
	if _, usage := errors.AsType[usageError](err); usage {
		return 2
	}
	return 1
}

// parse returns the command that args name, and its flags. If they ask for help on none, c has no name.
func parse(args []string, g *globals) (c command, fs *pflag.FlagSet, err error) {
	global := newFlagSet("umbel", g)
	global.SetInterspersed(false)
	if rest, ok := flowerArgs(args, global); ok {
		c = commandNamed("flower")
		fs = newFlagSet("umbel flower", c.runner)
		fs.AddFlagSet(global)
		return c, fs, parseCommand(c, fs, rest)
	}
	err = global.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return command{args: "<command>", help: "The live dashboard for Celery."}, global, err
	}
	words := global.Args() // none where a flag is one of the default command's
	if len(words) == 1 && words[0] == "version" {
		g.Version, args, words = true, nil, nil
	}
	all := commands()
	c, rest := all[0], args
	if len(words) > 0 {
		i := slices.IndexFunc(all, func(c command) bool {
			return c.name == words[0] || c.name == strings.Join(words[:min(2, len(words))], " ")
		})
		if i < 0 {
			return c, global, fmt.Errorf("unknown command %s: see umbel --help", words[0])
		}
		c = all[i]
		rest = words[len(strings.Fields(c.name)):]
	}
	fs = newFlagSet("umbel "+c.name, c.runner)
	fs.AddFlagSet(global)
	if err := parseCommand(c, fs, rest); err != nil {
		return c, fs, err
	}
	if extra := fs.Args(); len(extra) > len(strings.Fields(c.args)) && !strings.Contains(c.args, "...") {
		return c, fs, fmt.Errorf("unexpected argument %s", extra[len(extra)-1])
	}
	return c, fs, nil
}

// parseCommand sets the flags of a command. Some read more than flags.
func parseCommand(c command, fs *pflag.FlagSet, args []string) error {
	if p, ok := c.runner.(interface {
		parse(fs *pflag.FlagSet, args []string) error
	}); ok {
		return p.parse(fs, args)
	}
	return parseFlags(fs, args)
}

// commandNamed returns a command that exists.
func commandNamed(name string) command {
	all := commands()
	return all[slices.IndexFunc(all, func(c command) bool { return c.name == name })]
}

// complain says in one line what is wrong.
func complain(w io.Writer, err error) { _, _ = fmt.Fprintf(w, "umbel: %v\n", err) }

func (g *globals) logger(w io.Writer) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(g.LogLevel)) // the parser has checked it
	o := &slog.HandlerOptions{Level: level}
	if g.LogFormat == "json" {
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
