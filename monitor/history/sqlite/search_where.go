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
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

// lowTask is a placeholder, among arguments, for the first tasks.task to look for in the text index. A textMatch stands for the
// tasks that it finds, as a JSON array.
type lowTask struct{}

// bind returns the arguments of a condition with values for their placeholders, of tasks from low to high.
func bind(ctx context.Context, c where.Condition, q tables.Reader, low, high int64) ([]any, error) {
	args := slices.Clone(c.Args)
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

// searchesTexts reports whether a condition searches the text index.
func searchesTexts(c where.Condition) bool {
	return slices.ContainsFunc(c.Args, func(a any) bool { _, ok := a.(lowTask); return ok })
}

// compiler turns queries into conditions: it is the where.Terms of SQLite.
type compiler struct {
	q      tables.Reader
	now    time.Time
	used   map[query.Field][]symbol // cache of usedSymbols
	sample []string                 // texts of the newest tasks
}

// expr compiles an expression.
func (c *compiler) expr(ctx context.Context, e query.Expr) (where.Condition, error) {
	return where.Compile(ctx, e, c.now, c)
}

// Call selects the tasks of a call.
func (*compiler) Call(id state.CallID) where.Condition { return where.Exactly(ofCall, id[:]) }

// ofCall selects the tasks of a call, as the index tasks_by_call has them.
const ofCall = "call = ? AND call > x'00'"

// Word compiles a term on a field whose values are symbols.
func (c *compiler) Word(ctx context.Context, t query.Term) (where.Condition, error) {
	symbols, known, err := c.symbols(ctx, t)
	if known || err != nil {
		if err != nil {
			return where.Condition{}, err
		}
		return c.symbolsCondition(ctx, t.Field, symbols)
	}
	return where.Condition{SQL: where.Column(t.Field) + " IS NOT NULL", Exact: slices.ContainsFunc(t.Values, where.IsWildcard)}, nil
}

// symbols returns the symbols that match the values of a term; known is false if all do or there are too many to compare.
func (c *compiler) symbols(ctx context.Context, t query.Term) (symbols []int64, known bool, err error) {
	if slices.ContainsFunc(t.Values, where.IsWildcard) {
		return nil, false, nil
	}
	if t.Field != query.State && where.AllExact(t.Values) {
		symbols, err = c.exactSymbols(ctx, t.Values)
		return symbols, true, err
	}
	return c.symbolsWhere(ctx, t.Field, where.Matcher(t))
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
func oneOf(column string, symbols []int64) where.Condition {
	return where.Exactly(column+" IN (SELECT value FROM json_each(?))", jsonArray(symbols))
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
	return found, tables.Wrap("resolve values", err)
}

// usedSymbols returns the distinct symbols of a column, at most maxSymbols, by a skip scan of its index. Without an index, it
// returns all symbols.
func (c *compiler) usedSymbols(ctx context.Context, f query.Field) ([]symbol, error) {
	if s, ok := c.used[f]; ok {
		return s, nil
	}
	column := where.Column(f)
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
