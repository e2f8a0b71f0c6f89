package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/umbelhq/umbel/monitor/duplicates"
	"github.com/umbelhq/umbel/state"
)

// neighbours is how many tasks of its call a task is compared with: as many that were first saved before it, and after. It
// stands in statements as a constant: SQLite compiles a statement anew each time that a parameter of LIMIT is set.
const neighbours = ` LIMIT 32`

// alone are the ways to repeat work by which a single task is a group.
const alone = int64(state.Redelivery | state.Resend)

// ungrouped is the call of tasks whose arguments are not known as a whole. It sorts before all others.
const ungrouped = "\x00"

// callRow is what grouping needs of a row of tasks.
type callRow struct {
	task int64
	call []byte // nil if nothing has looked at it yet, ungrouped if its arguments are not known as a whole
	name int64  // symbol, 0 if unknown
	dup  int64
	span duplicates.Span
}

func (r *callRow) known() bool { return len(r.call) > len(ungrouped) }

// callColumns are scanned by scanCall.
const callColumns = `task, call, coalesce(name, 0), dup, state, coalesce(started, 0), coalesce(finished, 0), coalesce(run, -1), lost IS NOT NULL`

// scanCall scans callColumns, and further ones into more.
func (t *tx) scanCall(rows *sql.Rows, more ...any) (r callRow, err error) {
	var symbol int64
	var times duplicates.Times
	into := []any{&r.task, &r.call, &r.name, &r.dup, &symbol, &times.Started, &times.Ended, &times.Run, &times.Lost}
	err = rows.Scan(append(into, more...)...)
	times.State, times.Skipped = state.State(t.symbolText(symbol)), r.dup&int64(state.Skipped) != 0
	r.span = times.Span()
	return r, err
}

// callOf returns the row of a task as it is to be saved, without key and marks of other tasks. A call that is not known
// from its events may be known from a message that Umbel has sent, or from before, if that was for a task of this name.
func (t *tx) callOf(v *state.Task, before *callRow) (r callRow, err error) {
	r = callRow{call: []byte(ungrouped), dup: int64(v.OwnDuplicates()), span: duplicates.SpanOf(v)}
	if v.Name == nil {
		return r, nil
	}
	if r.name, err = t.symbol(*v.Name); err != nil {
		return r, err
	}
	arguments, ok := duplicates.ArgumentsOf(v)
	if !ok {
		if duplicates.Redacted(v) { // a digest of what was redacted would let it be guessed
			return r, nil
		}
		if arguments, ok, err = t.publishedArguments(v.ID); err != nil {
			return r, err
		}
	}
	if call := arguments.Call(*v.Name, t.db.calls.Of(*v.Name)); ok && call.Known() {
		r.call = call[:]
	} else if before != nil && before.known() && before.name == r.name {
		r.call = before.call
	}
	return r, nil
}

// publishedArguments returns the arguments of a task that was published through the outbox.
func (t *tx) publishedArguments(id string) (a duplicates.Arguments, ok bool, err error) {
	if t.publishes == nil {
		t.publishes = new(bool)
		if err := t.get(`SELECT EXISTS (SELECT 1 FROM outbox WHERE kind = 'task')`, nil, t.publishes); err != nil {
			return a, false, err
		}
	}
	if !*t.publishes {
		return a, false, nil
	}
	var payload []byte
	err = t.get(`SELECT payload FROM outbox WHERE task = ? AND task <> '' AND kind = 'task' LIMIT 1`, []any{id}, &payload)
	if errors.Is(err, sql.ErrNoRows) {
		return a, false, nil
	}
	var message struct {
		ID           string
		Args, Kwargs json.RawMessage
	}
	if err != nil || json.Unmarshal(payload, &message) != nil || message.ID != id {
		return a, false, err
	}
	a, ok = duplicates.ParseArguments(message.Args, message.Kwargs)
	return a, ok, nil
}

// others returns the tasks of a call that were first saved next to a task, without the task itself. One that is not saved
// yet is after all others.
func (t *tx) others(call []byte, task int64) (list []callRow, err error) {
	take := func(rows *sql.Rows) error {
		r, err := t.scanCall(rows)
		list = append(list, r)
		return err
	}
	const of = `SELECT ` + callColumns + ` FROM tasks WHERE call = ? AND call > x'00' AND task `
	if task == 0 {
		err = t.each(of+`> 0 ORDER BY task DESC`+neighbours, []any{call}, take)
		return list, err
	}
	if err = t.each(of+`< ? ORDER BY task DESC`+neighbours, []any{call, task}, take); err == nil {
		err = t.each(of+`> ? ORDER BY task`+neighbours, []any{call, task}, take)
	}
	return list, err
}

// compare adds to a task the marks that others of its call give it. It returns those others that gain marks, with them,
// and those that may lose some, given when the task ran before.
func compare(r *callRow, others []callRow, before duplicates.Span) (gain, lose []callRow) {
	for _, o := range others {
		mine, theirs := duplicates.Compare(r.span, o.span)
		r.dup |= int64(mine)
		_, had := duplicates.Compare(before, o.span)
		switch {
		case had&^theirs != 0:
			lose = append(lose, o)
		case int64(theirs)&^o.dup != 0:
			o.dup |= int64(theirs)
			gain = append(gain, o)
		}
	}
	return gain, lose
}

// mark saves the marks of other tasks.
func (t *tx) mark(others []callRow) error {
	for i := range others {
		if err := t.exec(`UPDATE tasks SET dup = ? WHERE task = ?`, others[i].dup, others[i].task); err != nil {
			return err
		}
	}
	return nil
}

// judgeAgain compares tasks with all others of their call.
func (t *tx) judgeAgain(list []callRow) error {
	for _, r := range list {
		others, err := t.others(r.call, r.task)
		if err != nil {
			return err
		}
		before := r.dup
		r.dup &= int64(state.OwnDuplicates)
		compare(&r, others, duplicates.Span{})
		if r.dup != before {
			if err := t.mark([]callRow{r}); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepared is a task that is to be saved, with what that changes of others of its call.
type prepared struct {
	callRow

	others     bool // there are others
	gain, lose []callRow
}

// prepare compares a task that is to be saved with others of its call. old is its row, nil if there is none.
func (t *tx) prepare(r callRow, old *callRow) (p prepared, err error) {
	p.callRow = r
	if old != nil {
		p.task = old.task
	}
	if !p.known() {
		return p, nil
	}
	same := old != nil && bytes.Equal(old.call, p.call)
	if same {
		if ok, err := t.grouped(p.call); !ok || err != nil {
			return p, err
		}
		p.others = true
		if old.span == p.span {
			p.dup |= old.dup &^ int64(state.OwnDuplicates)
			return p, nil
		}
	}
	var before duplicates.Span
	if same {
		before = old.span
	}
	others, err := t.others(p.call, p.task)
	p.others = len(others) > 0
	p.gain, p.lose = compare(&p.callRow, others, before)
	return p, err
}

// grouped reports whether a call has two tasks or more.
func (t *tx) grouped(call []byte) (bool, error) {
	err := t.get(`SELECT 1 FROM duplicates WHERE key = ?`, []any{call}, new(int))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// regroup does what follows once a prepared task is saved. old is as for prepare.
func (t *tx) regroup(p *prepared, old *callRow) error {
	if err := t.mark(p.gain); err != nil {
		return err
	}
	var err error
	if old != nil && old.call != nil && bytes.Equal(old.call, p.call) && (p.known() || old.name == p.name) {
		err = t.stay(p, old)
	} else {
		if old != nil {
			if err := t.leave(old); err != nil {
				return err
			}
		}
		err = t.join(p)
	}
	if err == nil && len(p.lose) > 0 {
		err = t.judgeAgain(p.lose)
	}
	return err
}

// marks returns what a prepared task and others that it has changed are marked with.
func (p *prepared) marks() int64 {
	marks := p.dup
	for i := range p.gain {
		marks |= p.gain[i].dup
	}
	return marks
}

// stay updates the group that a task is in and stays in.
func (t *tx) stay(p *prepared, old *callRow) error {
	switch {
	case p.others && (p.dup != old.dup || len(p.gain) > 0):
		return t.exec(`UPDATE duplicates SET marks = marks | ?1 WHERE key = ?2 AND marks | ?1 <> marks`, p.marks(), p.call)
	case p.others || p.dup == old.dup:
		return nil
	case p.dup&alone != 0:
		return t.addAlone(&p.callRow)
	default:
		return t.removeAlone(old)
	}
}

// join adds a task to the group of its call. The second task of a call makes one.
func (t *tx) join(p *prepared) error {
	switch {
	case p.known() && p.others:
		done, err := t.change(`UPDATE duplicates SET n = n + 1, newest = max(newest, ?), marks = marks | ? WHERE key = ?`,
			p.task, p.marks(), p.call)
		if err != nil || done > 0 {
			t.tally.grouped += int64(done)
			return err
		}
		others, err := t.others(p.call, p.task)
		if err != nil || len(others) == 0 {
			return err
		}
		if err := t.removeAlone(&others[0]); err != nil {
			return err
		}
		t.tally.groups, t.tally.grouped = t.tally.groups+1, t.tally.grouped+2
		return t.exec(`INSERT INTO duplicates (key, name, n, newest, marks) VALUES (?, ?, 2, ?, ?)`,
			p.call, p.name, max(p.task, others[0].task), p.marks()|others[0].dup)
	case p.known():
	default:
		t.tally.addUngrouped(p.name, 1)
	}
	if p.dup&alone != 0 {
		return t.addAlone(&p.callRow)
	}
	return nil
}

// leave removes a task, which is not saved with its call anymore, from the group of that. The last but one ends the group.
func (t *tx) leave(r *callRow) error {
	if r.call == nil {
		return nil
	}
	if !r.known() {
		t.tally.addUngrouped(r.name, -1)
		return t.removeAlone(r)
	}
	var n, newest int64
	err := t.get(`SELECT n, newest FROM duplicates WHERE key = ?`, []any{r.call}, &n, &newest)
	if errors.Is(err, sql.ErrNoRows) {
		return t.removeAlone(r)
	}
	if err != nil {
		return err
	}
	if n <= 2 {
		t.tally.groups, t.tally.grouped = t.tally.groups-1, t.tally.grouped-n
		if err := t.exec(`DELETE FROM duplicates WHERE key = ?`, r.call); err != nil {
			return err
		}
		left, err := t.others(r.call, r.task)
		if err == nil && len(left) > 0 && left[0].dup&alone != 0 {
			err = t.addAlone(&left[0])
		}
		return err
	}
	t.tally.grouped--
	if newest == r.task {
		return t.exec(`UPDATE duplicates SET n = n - 1, newest = (SELECT max(task) FROM tasks WHERE call = ?1 AND call > x'00' AND task <> ?2)
			WHERE key = ?1`, r.call, r.task)
	}
	return t.exec(`UPDATE duplicates SET n = n - 1 WHERE key = ?`, r.call)
}

// addAlone adds, or updates, the group of a single task.
func (t *tx) addAlone(r *callRow) error {
	done, err := t.change(`UPDATE duplicates SET marks = ?, name = ? WHERE key = ?`, r.dup, r.name, r.task)
	if err != nil || done > 0 {
		return err
	}
	t.tally.groups, t.tally.grouped = t.tally.groups+1, t.tally.grouped+1
	return t.exec(`INSERT INTO duplicates (key, name, n, newest, marks) VALUES (?1, ?2, 1, ?1, ?3)`, r.task, r.name, r.dup)
}

// removeAlone removes the group of a single task, if there is one.
func (t *tx) removeAlone(r *callRow) error {
	if r.dup&alone == 0 {
		return nil
	}
	done, err := t.change(`DELETE FROM duplicates WHERE key = ?`, r.task)
	t.tally.groups, t.tally.grouped = t.tally.groups-int64(done), t.tally.grouped-int64(done)
	return err
}

// Keys of the table meta.
const (
	metaGroups  = "duplicate groups"
	metaGrouped = "duplicate tasks"
)

// tally is what a transaction changes of the numbers of duplicates.
type tally struct {
	groups, grouped int64
	ungrouped       map[int64]int64 // by symbol of the name
}

func (a *tally) addUngrouped(name, n int64) {
	if a.ungrouped == nil {
		a.ungrouped = make(map[int64]int64)
	}
	a.ungrouped[name] += n
}

// saveTally saves the tally.
func (t *tx) saveTally() error {
	for key, n := range map[string]int64{metaGroups: t.tally.groups, metaGrouped: t.tally.grouped} {
		if n == 0 {
			continue
		}
		if err := t.exec(`INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value`, key, n); err != nil {
			return err
		}
	}
	for name, n := range t.tally.ungrouped {
		if n == 0 {
			continue
		}
		err := t.exec(`INSERT INTO ungrouped (name, n) VALUES (?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n`, name, n)
		if err == nil && n < 0 {
			err = t.exec(`DELETE FROM ungrouped WHERE name = ? AND n <= 0`, name)
		}
		if err != nil {
			return err
		}
	}
	t.tally = tally{}
	return nil
}

// callID returns the call of a column, zero if it has none.
func callID(column []byte) (c state.CallID) {
	if len(column) == len(c) {
		copy(c[:], column)
	}
	return c
}
