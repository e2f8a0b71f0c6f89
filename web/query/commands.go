package query

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

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

// CommandStates are the states of commands, in the order in which they are passed.
func CommandStates() []history.CommandState {
	return []history.CommandState{
		history.CommandPending, history.CommandInFlight, history.CommandSent, history.CommandDone, history.CommandSilent,
		history.CommandDead, history.CommandExpired, history.CommandDiscarded,
	}
}

// CommandKinds are the kinds of commands.
func CommandKinds() []string { return []string{"control", "task", "purge"} }

// ParseCommands reads a query from URL parameters, of which empty ones count as absent. On the first wrong or
// unknown one it returns an *Error, beside a query of all that was right.
func ParseCommands(v url.Values) (Commands, error) {
	p := parser{values: v}
	c := Commands{
		States: p.commandStates(), Kind: p.commandKind(), Task: p.short(paramTask), Worker: p.short(paramWorker),
		Actor: p.short(paramActor), Request: p.number(paramRequest), Limit: p.limit(), Before: p.number(paramCursor),
	}
	p.known(paramState, paramKind, paramTask, paramWorker, paramActor, paramRequest, paramLimit, paramCursor)
	if p.err != nil {
		return c, p.err
	}
	return c, nil
}

// ParseAudit reads which page of the audit log is asked for, like ParseCommands: the record before which it begins,
// 0 for the newest ones, and how many it holds at most.
func ParseAudit(v url.Values) (before int64, limit int, err error) {
	p := parser{values: v}
	before, limit = p.number(paramCursor), cmp.Or(p.limit(), DefaultLimit)
	p.known(paramLimit, paramCursor)
	if p.err != nil {
		return before, limit, p.err
	}
	return before, limit, nil
}

func (p *parser) commandStates() []history.CommandState {
	var list []history.CommandState
	for _, s := range p.states() {
		st := history.CommandState(strings.ToLower(s))
		if !slices.Contains(CommandStates(), st) {
			p.fail(paramState, "must be pending, in_flight, sent, done, silent, dead, expired or discarded")
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

// known reports any other parameter.
func (p *parser) known(names ...string) {
	var unknown []string
	for name := range p.values {
		if !slices.Contains(names, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		p.fail(slices.Min(unknown), "is not a parameter of this list; these are: "+strings.Join(names, ", "))
	}
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

// Filtered reports whether the query leaves any command out.
func (c Commands) Filtered() bool {
	return len(c.States) > 0 || c.Kind != "" || c.Task != "" || c.Worker != "" || c.Actor != "" || c.Request != 0
}

// URL returns path with the parameters that select the same page, in one spelling.
func (c Commands) URL(path string) string {
	v := url.Values{}
	set := func(param, value string) {
		if value != "" {
			v.Set(param, value)
		}
	}
	number := func(param string, n int64) {
		if n != 0 {
			v.Set(param, strconv.FormatInt(n, 10))
		}
	}
	states := make([]string, len(c.States))
	for i, s := range c.States {
		states[i] = string(s)
	}
	set(paramState, strings.Join(states, ","))
	set(paramKind, c.Kind)
	set(paramTask, c.Task)
	set(paramWorker, c.Worker)
	set(paramActor, c.Actor)
	number(paramRequest, c.Request)
	number(paramLimit, int64(c.Limit))
	number(paramCursor, c.Before)
	if len(v) == 0 {
		return path
	}
	return path + "?" + v.Encode()
}
