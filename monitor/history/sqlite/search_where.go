package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// condition is a part of a WHERE clause on tasks. One that is not exact selects more tasks than match, never fewer.
type condition struct {
	sql   string
	args  []any
	exact bool
}

// lowTask is a placeholder, among arguments, for the first tasks.task to look for in the text index. A textMatch stands for the
// tasks that it finds, as a JSON array.
type lowTask struct{}

var (
	always    = condition{sql: "TRUE", exact: true}  //nolint:gochecknoglobals // a constant
	never     = condition{sql: "FALSE", exact: true} //nolint:gochecknoglobals // a constant
	undecided = condition{sql: "TRUE"}               //nolint:gochecknoglobals // a constant
)

// join joins conditions by AND or OR.
func join(operator string, list []condition) condition {
	switch len(list) {
	case 0:
		if operator == "AND" {
			return always
		}
		return never
	case 1:
		return list[0]
	}
	joined := condition{exact: true}
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = "(" + c.sql + ")"
		joined.args = append(joined.args, c.args...)
		joined.exact = joined.exact && c.exact
	}
	joined.sql = strings.Join(parts, " "+operator+" ")
	return joined
}

// bind returns the arguments with values for their placeholders, of tasks from low to high.
func (c condition) bind(ctx context.Context, q tables.Reader, low, high int64) ([]any, error) {
	args := slices.Clone(c.args)
	for i, a := range args {
		switch a := a.(type) {
		case lowTask:
			args[i] = low
		case textMatch:
			tasks, err := a.find(ctx, q, low, high, math.MaxInt)
			if err != nil {
				return nil, fmt.Errorf("search texts: %w", err)
			}
			args[i] = jsonArray(tasks)
		}
	}
	return args, nil
}

// texts reports whether the condition searches the text index.
func (c condition) texts() bool {
	return slices.ContainsFunc(c.args, func(a any) bool { _, ok := a.(lowTask); return ok })
}

// compiler turns queries into conditions.
type compiler struct {
	q      tables.Reader
	now    time.Time
	used   map[query.Field][]symbol // cache of usedSymbols
	sample []string                 // texts of the newest tasks
}

// expr compiles an expression.
func (c *compiler) expr(ctx context.Context, e query.Expr) (condition, error) {
	switch e := e.(type) {
	case query.And:
		return c.all(ctx, "AND", e)
	case query.Or:
		return c.all(ctx, "OR", e)
	case query.Not:
		x, err := c.expr(ctx, e.X)
		if err != nil || !x.exact {
			return undecided, err
		}
		x.sql = "(" + x.sql + ") IS NOT TRUE"
		return x, nil
	case query.Term:
		return c.term(ctx, e)
	default:
		return undecided, nil
	}
}

func (c *compiler) all(ctx context.Context, operator string, list []query.Expr) (condition, error) {
	conditions := make([]condition, len(list))
	for i, x := range list {
		var err error
		if conditions[i], err = c.expr(ctx, x); err != nil {
			return condition{}, err
		}
	}
	return join(operator, conditions), nil
}

func (c *compiler) term(ctx context.Context, t query.Term) (condition, error) {
	column := columnOf(t.Field)
	switch {
	case t.Field == query.ID || t.Field == query.Parent:
		return idCondition(column, t.Values), nil
	case t.Field == query.Root:
		return join("OR", []condition{idCondition(column, t.Values), idCondition("id", t.Values)}), nil
	case t.Field == query.Failure:
		return failureCondition(t.Values), nil
	case t.Field == query.State || t.Field.Type() == query.Word:
		return c.symbolCondition(ctx, t)
	case t.Field == query.Is:
		return isCondition(t.Values), nil
	case t.Field == query.Dup:
		return dupCondition(t.Values), nil
	case t.Field == query.Outbox || t.Field.Causal():
		return never, nil // not resolved
	case t.Field.Type() == query.Text:
		return c.textCondition(ctx, t)
	default:
		return c.rangeCondition(column, t.Values), nil
	}
}

// columnOf returns the column of tasks that a field is in: the one of its name.
func columnOf(f query.Field) string {
	if f == query.Any {
		return "name"
	}
	return f.String()
}

func (c *compiler) rangeCondition(column string, values []query.Value) condition {
	list := make([]condition, len(values))
	for i, v := range values {
		ends := []condition{{sql: column + " IS NOT NULL", exact: true}}
		if v.Min.Set {
			ends = append(ends, condition{column + operator(">", v.Min), []any{v.Min.At(c.now)}, true})
		}
		if v.Max.Set {
			ends = append(ends, condition{column + operator("<", v.Max), []any{v.Max.At(c.now)}, true})
		}
		if column == "updated" {
			ends = append(ends, condition{sql: "updated <> 0", exact: true})
		}
		list[i] = join("AND", ends)
	}
	return join("OR", list)
}

func operator(than string, b query.Bound) string {
	if b.Exclusive {
		return " " + than + " ?"
	}
	return " " + than + "= ?"
}

// Bits of the column flags.
const (
	flagRedelivered = 1 << iota
	flagTruncated
	flagRetried
	flagRenamed
	flagLost
	flagOrphaned
	flagDismissed

	allFlags = 1<<iota - 1
)

// isFlags returns the bit for a value of query.Is.
var isFlags = map[string]int{ //nolint:gochecknoglobals // a constant table
	query.IsRedelivered: flagRedelivered, query.IsTruncated: flagTruncated, query.IsRetried: flagRetried,
	query.IsLost: flagLost, query.IsOrphaned: flagOrphaned, query.IsDismissed: flagDismissed,
}

// isCondition compiles values of query.Is.
func isCondition(values []query.Value) condition {
	list := make([]condition, 0, len(values))
	for _, v := range values {
		switch v.Text {
		case query.IsActive:
			list = append(list, condition{sql: "final = 0", exact: true})
		case query.IsFinished:
			list = append(list, condition{sql: "final <> 0", exact: true})
		default:
			list = append(list, condition{"flags <> 0 AND flags & ? <> 0", []any{isFlags[v.Text]}, true})
		}
	}
	return join("OR", list)
}

// dupValues divides values of query.Dup into marks and calls.
func dupValues(values []query.Value) (marks state.Duplicates, calls []state.CallID) {
	for _, v := range values {
		if call, ok := state.ParseCallID(v.Text); ok {
			calls = append(calls, call)
		}
		marks |= query.DupMarks(v.Text)
	}
	return marks, calls
}

// dupCondition compiles values of query.Dup.
func dupCondition(values []query.Value) condition {
	marks, calls := dupValues(values)
	var list []condition
	if marks != 0 {
		list = append(list, condition{"dup <> 0 AND dup & ? <> 0", []any{marks}, true})
	}
	for _, call := range calls {
		list = append(list, condition{"call = ? AND call > x'00'", []any{call[:]}, true})
	}
	return join("OR", list)
}

// symbolCondition compiles a term on a field whose values are symbols.
func (c *compiler) symbolCondition(ctx context.Context, t query.Term) (condition, error) {
	symbols, known, err := c.symbols(ctx, t)
	if known || err != nil {
		if err != nil {
			return condition{}, err
		}
		return c.symbolsCondition(ctx, t.Field, symbols)
	}
	return condition{columnOf(t.Field) + " IS NOT NULL", nil, slices.ContainsFunc(t.Values, isWildcard)}, nil
}

// isWildcard reports whether a value matches every text.
func isWildcard(v query.Value) bool { return v.Match == query.Pattern && v.Text == "*" }

// symbols returns the symbols that match the values of a term; known is false if all do or there are too many to compare.
func (c *compiler) symbols(ctx context.Context, t query.Term) (symbols []int64, known bool, err error) {
	if slices.ContainsFunc(t.Values, isWildcard) {
		return nil, false, nil
	}
	if t.Field != query.State && !slices.ContainsFunc(t.Values, func(v query.Value) bool { return v.Match != query.Exact }) {
		symbols, err = c.exactSymbols(ctx, t.Values)
		return symbols, true, err
	}
	return c.symbolsWhere(ctx, t.Field, matcher(t))
}

// symbolsWhere returns the symbols of a field whose text holds accepts; known is false if there are too many to compare.
func (c *compiler) symbolsWhere(ctx context.Context, f query.Field, holds func(text string) bool) (symbols []int64, known bool, err error) {
	used, err := c.usedSymbols(ctx, f)
	if err != nil || len(used) == maxSymbols {
		return nil, false, err
	}
	for _, s := range used {
		if holds(s.text) {
			symbols = append(symbols, s.number)
		}
	}
	return symbols, true, nil
}

// oneOf selects tasks whose column is one of the symbols.
func oneOf(column string, symbols []int64) condition {
	return condition{column + " IN (SELECT value FROM json_each(?))", []any{jsonArray(symbols)}, true}
}

// jsonArray encodes numbers as a JSON array.
func jsonArray(list []int64) string {
	if len(list) == 0 {
		return "[]"
	}
	b, err := json.Marshal(list)
	if err != nil {
		panic(err) // numbers only
	}
	return string(b)
}

// symbol is an interned text.
type symbol struct {
	number int64
	text   string
}

// maxSymbols bounds the values of a field that are compared with a pattern.
const maxSymbols = 10_000

// exactSymbols returns the symbols of exact values.
func (c *compiler) exactSymbols(ctx context.Context, values []query.Value) ([]int64, error) {
	texts := make([]any, len(values))
	for i, v := range values {
		texts[i] = v.Text
	}
	places := strings.TrimSuffix(strings.Repeat("?,", len(texts)), ",")
	found, err := tables.List[int64](ctx, c.q, "SELECT symbol FROM symbols WHERE text IN ("+places+")", texts...)
	return found, wrap("resolve values", err)
}

// usedSymbols returns the distinct symbols of a column, at most maxSymbols, by a skip scan of its index. Without an index, it
// returns all symbols.
func (c *compiler) usedSymbols(ctx context.Context, f query.Field) ([]symbol, error) {
	if s, ok := c.used[f]; ok {
		return s, nil
	}
	column := columnOf(f)
	distinct := `WITH RECURSIVE used(symbol) AS (
			SELECT min(` + column + `) FROM tasks WHERE ` + column + ` IS NOT NULL
			UNION ALL
			SELECT (SELECT min(` + column + `) FROM tasks WHERE ` + column + ` > used.symbol) FROM used WHERE used.symbol IS NOT NULL
		)
		SELECT symbol, text FROM used JOIN symbols USING (symbol) LIMIT ?`
	if !hasIndex(f) {
		distinct = `SELECT symbol, text FROM symbols LIMIT ?`
	}
	used, err := symbolsOf(ctx, c.q, distinct, maxSymbols)
	if err != nil {
		return nil, fmt.Errorf("list values: %w", err)
	}
	if f == query.Name {
		former, err := c.formerSymbols(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range former {
			if !slices.Contains(used, s) {
				used = append(used, s)
			}
		}
		used = used[:min(len(used), maxSymbols)]
	}
	if c.used == nil {
		c.used = make(map[query.Field][]symbol)
	}
	c.used[f] = used
	return used, nil
}

// symbolsOf returns the symbols that a query selects, with their texts.
func symbolsOf(ctx context.Context, q tables.Reader, query string, args ...any) (found []symbol, err error) {
	err = tables.EachRow(ctx, q, query, args, func(rows *sql.Rows) error {
		var s symbol
		err := rows.Scan(&s.number, &s.text)
		found = append(found, s)
		return err
	})
	return found, err
}

// matcher returns a function that reports whether a term matches a task with a text in its field.
func matcher(t query.Term) func(text string) bool {
	q := query.New(t)
	switch t.Field {
	case query.State, query.Is: // values that the state decides
		return func(text string) bool { return q.Match(&state.Task{State: state.State(text)}, time.Time{}) }
	case query.Any: // all texts are compared alike
		return matcher(query.Term{Field: query.Args, Values: t.Values})
	case query.Args:
		return func(text string) bool { return q.Match(&state.Task{Args: &text}, time.Time{}) }
	default: // words too
		q = query.New(query.Term{Field: query.Name, Values: t.Values})
		return func(text string) bool { return q.Match(&state.Task{Name: &text}, time.Time{}) }
	}
}
