package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/monitor/history/tables"
	"github.com/umbelhq/umbel/monitor/history/tasktext"
	"github.com/umbelhq/umbel/monitor/history/trigram"
	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state"
	"github.com/umbelhq/umbel/state/query"
)

const (
	// maxAllTrigrams is how many are all looked for. Of more, it is the rareTrigrams that fewest of sampleTasks have.
	maxAllTrigrams = 8
	rareTrigrams   = 5
	sampleTasks    = 64
	// commonTasks is how many of sampleTasks have a trigram that selects so little that its list is not read beside another.
	commonTasks = sampleTasks / 4
	// maxTrigrams bounds how much of a text is looked for: more would hardly find less.
	maxTrigrams = 60
)

// match returns, for each value, trigrams that are in all texts that contain it, false if there are none for one of them.
func (c *compiler) match(ctx context.Context, values []query.Value) ([][]trigram.Gram, bool, error) {
	list := make([][]trigram.Gram, len(values))
	for i, v := range values {
		var grams []string
		for _, part := range where.Parts(v) {
			grams = appendTrigrams(grams, part)
		}
		if len(grams) == 0 {
			return nil, false, nil
		}
		grams, err := c.rarest(ctx, grams)
		if err != nil {
			return nil, false, err
		}
		for _, gram := range grams {
			list[i] = trigram.Append(list[i], gram)
		}
	}
	return list, true, nil
}

// textsTo returns the greatest tasks.task that indexing has come to.
func (c *compiler) textsTo(ctx context.Context) (int64, error) {
	return tables.Number[int64](ctx, c.q, `SELECT `+indexedTo)
}

// appendTrigrams appends the trigrams of a text.
func appendTrigrams(grams []string, text string) []string {
	runes := []rune(tasktext.Fold(text))
	for i := 0; i+trigram.Length <= len(runes) && len(grams) < maxTrigrams; i++ {
		if gram := string(runes[i : i+trigram.Length]); !slices.Contains(grams, gram) {
			grams = append(grams, gram)
		}
	}
	return grams
}

// rarest returns the trigrams that are rarest in the newest tasks. A page is read for each trigram that is looked for, and common
// ones select nothing.
func (c *compiler) rarest(ctx context.Context, grams []string) ([]string, error) {
	if len(grams) <= maxAllTrigrams {
		return grams, nil
	}
	if c.sample == nil {
		if err := c.takeSample(ctx); err != nil {
			return nil, err
		}
	}
	tasks := make(map[string]int, len(grams))
	for _, gram := range grams {
		for _, text := range c.sample {
			if strings.Contains(text, gram) {
				tasks[gram]++
			}
		}
	}
	slices.SortStableFunc(grams, func(a, b string) int { return cmp.Compare(tasks[a], tasks[b]) })
	n := 1
	for n < rareTrigrams && tasks[grams[n]] <= commonTasks {
		n++
	}
	return grams[:n], nil
}

// takeSample reads the texts of the newest tasks.
func (c *compiler) takeSample(ctx context.Context) error {
	var reader state.Reader
	c.sample = make([]string, 0, sampleTasks)
	err := tables.EachRow(ctx, c.q, `SELECT id, body FROM (SELECT task, id FROM tasks ORDER BY clock DESC LIMIT ?) JOIN events USING (task)`, []any{sampleTasks}, func(rows *sql.Rows) error {
		var id any
		var events sql.RawBytes
		if err := rows.Scan(&id, &events); err != nil {
			return err
		}
		t, err := reader.Task(idText(id), events)
		if err == nil { // else the sample has one text less
			c.sample = append(c.sample, tasktext.Searchable(&t))
		}
		return nil
	})
	return tables.Wrap("sample texts", err)
}

// textMatch is what trigrams can tell of a text: of each part of it one alternative, of which all are there.
type textMatch [][][]trigram.Gram

// find returns tasks, from first to last, of which the text may match, at most limit, the newest blocks first. Tasks that are not
// indexed are not among them.
func (m textMatch) find(ctx context.Context, q tables.Reader, first, last int64, limit int) (tasks []int64, err error) {
	found, err := segments(ctx, q, `block BETWEEN ? AND ? ORDER BY block DESC`, first/trigram.Documents, last/trigram.Documents)
	for i := 0; i < len(found) && len(tasks) < limit && err == nil; {
		block := found[i].block
		var all trigram.Set
		for ; i < len(found) && found[i].block == block && err == nil; i++ {
			var s *trigram.Set
			if s, err = m.search(found[i].Reader); s != nil {
				all.Or(s)
			}
		}
		for _, doc := range all.Documents() {
			if task := block*trigram.Documents + int64(doc); task >= first && task <= last {
				tasks = append(tasks, task)
			}
		}
	}
	return tasks[:min(len(tasks), limit)], err
}

// search returns the documents of a segment that may match, nil if there are none.
func (m textMatch) search(r *trigram.Reader) (found *trigram.Set, err error) {
	for i, alternatives := range m {
		var some *trigram.Set
		for _, grams := range alternatives {
			s, err := searchAll(r, grams)
			switch {
			case err != nil:
				return nil, err
			case some == nil:
				some = s
			case s != nil:
				some.Or(s)
			}
		}
		if some == nil || i > 0 && !some.And(found) {
			return nil, nil //nolint:nilnil // no documents
		}
		found = some
	}
	return found, nil
}

// searchAll returns the documents of a segment that may have all of some trigrams, nil if there are none.
func searchAll(r *trigram.Reader, grams []trigram.Gram) (found *trigram.Set, err error) {
	for i, gram := range grams {
		s, err := r.Find(gram)
		if s == nil || err != nil || i > 0 && !s.And(found) {
			return nil, err
		}
		found = s
	}
	return found, nil
}

// Text compiles a term on texts. Rows that are not indexed yet may match.
func (c *compiler) Text(ctx context.Context, t query.Term) (where.Condition, error) {
	match, ok, err := c.match(ctx, t.Values)
	if !ok || err != nil {
		return where.Undecided(), err
	}
	to, err := c.textsTo(ctx)
	if err != nil {
		return where.Condition{}, err
	}
	list := []where.Condition{
		where.AtLeast("task > ? OR task IN (SELECT task FROM unindexed)", to),
		where.AtLeast("task < ? OR task IN (SELECT value FROM json_each(?))", lowTask{}, textMatch{match}),
	}
	if t.Field == query.Any {
		other, err := c.nameAndIDConditions(ctx, t)
		if err != nil {
			return where.Condition{}, err
		}
		list = append(list, other...)
	}
	return where.Or(list...), nil
}

// nameAndIDConditions compiles what free text finds in other columns: names that contain it, and ids that begin with it.
func (c *compiler) nameAndIDConditions(ctx context.Context, t query.Term) ([]where.Condition, error) {
	named, known, err := c.symbolsWhere(ctx, query.Name, where.Matcher(t))
	if err != nil {
		return nil, err
	}
	list := []where.Condition{where.AtLeast("name IS NOT NULL")}
	if known {
		if list[0], err = c.symbolsCondition(ctx, query.Name, named); err != nil {
			return nil, err
		}
	}
	for _, v := range t.Values {
		list = append(list, anyCasePrefix(strings.ToLower(v.Text))...)
	}
	return list, nil
}
