package query

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/command"
	"github.com/umbelhq/umbel/monitor/history"
)

const (
	paramKind    = "kind"
	paramTask    = "task"
	paramActor   = "actor"
	paramRequest = "request"
)

// Commands selects a page of the list of commands. The zero value selects the newest ones.
type Commands struct {
	States  []history.CommandState // none means any
	Kind    string
	Task    string // id of the task that commands are about
	Worker  string // that they are for or were answered by
	Actor   string
	Request int64
	Limit   int   // 1 to MaxLimit; 0 means DefaultLimit
	Before  int64 // the page continues after this command; 0 means the first page
}

// CommandKinds are the kinds of commands.
func CommandKinds() []string {
	return []string{"control", "task", "purge", command.RequeueDeadLetters, command.PurgeDeadLetters}
}

// ParseCommands reads a query from URL parameters as Parse does.
func ParseCommands(v url.Values) (Commands, error) {
	p := parser{values: v}
	return Commands{
		States: p.commandStates(), Kind: p.commandKind(), Task: p.short(paramTask), Worker: p.short(paramWorker),
		Actor: p.short(paramActor), Request: p.number(paramRequest), Limit: p.limit(), Before: p.number(paramCursor),
	}, p.failed()
}

// ParseCursor reads the number before which a page begins, 0 for the first page, and how many items it holds at most.
func ParseCursor(v url.Values) (before int64, limit int, err error) {
	p := parser{values: v}
	return p.number(paramCursor), cmp.Or(p.limit(), DefaultLimit), p.failed()
}

func (p *parser) commandStates() []history.CommandState {
	var list []history.CommandState
	for _, s := range p.states() {
		st := history.CommandState(strings.ToLower(s))
		if !slices.Contains(history.CommandStates(), st) {
			p.fail(paramState, "must be pending, in_flight, sent, done, no_reply, dead, expired or discarded")
			continue
		}
		if !slices.Contains(list, st) {
			list = append(list, st)
		}
	}
	slices.Sort(list)
	return list
}

func (p *parser) commandKind() string {
	kind := p.one(paramKind)
	if kind != "" && !slices.Contains(CommandKinds(), kind) {
		p.fail(paramKind, "must be "+strings.Join(CommandKinds(), ", "))
		return ""
	}
	return kind
}

// short returns a value that is not too long for a name.
func (p *parser) short(param string) string {
	s := p.one(param)
	if len(s) > maxValue {
		p.fail(param, "must be at most "+strconv.Itoa(maxValue)+" bytes long")
		return ""
	}
	return s
}

// number returns a whole number from 1, 0 if there is none.
func (p *parser) number(param string) int64 {
	s := p.one(param)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != s {
		p.fail(param, "must be a whole number from 1")
		return 0
	}
	return n
}

// Filter returns the query as a store takes it.
func (c Commands) Filter() history.CommandFilter {
	return history.CommandFilter{
		States: c.States, Kind: c.Kind, TaskID: c.Task, Worker: c.Worker, Actor: c.Actor, RequestID: c.Request,
		Before: c.Before, Limit: cmp.Or(c.Limit, DefaultLimit),
	}
}

// First returns the query without its place in the list.
func (c Commands) First() Commands {
	c.Before = 0
	return c
}

// URL returns path with the parameters that select the same page, in one spelling.
func (c Commands) URL(path string) string {
	states := make([]string, len(c.States))
	for i, s := range c.States {
		states[i] = string(s)
	}
	return address(path, map[string]string{
		paramState: strings.Join(states, ","), paramKind: c.Kind, paramTask: c.Task, paramWorker: c.Worker, paramActor: c.Actor,
		paramRequest: decimal(c.Request), paramLimit: decimal(c.Limit), paramCursor: decimal(c.Before),
	})
}
