package tables

import "github.com/umbelhq/umbel/monitor/history"

// Query is a query with arguments.
type Query struct {
	Text string
	Args []any
}

// OutboxQueries returns what relays and lists of commands ask again and again, for tests of how an engine carries it out.
func OutboxQueries(d Dialect) []Query {
	queries := d.claimQueries()
	for _, f := range []history.CommandFilter{
		{Before: 5},
		{States: []history.CommandState{history.CommandDone}},
		{States: []history.CommandState{history.CommandPending, history.CommandInFlight}},
		{Kind: "task"},
		{TaskID: "t"},
		{Actor: "ann"},
		{RequestID: 4},
	} {
		text, args := filterCommands(f)
		queries = append(queries, Query{text + ` ORDER BY command DESC LIMIT 10`, args})
	}
	return queries
}
