package tables

import (
	"bytes"
	"database/sql"
	"encoding/json"
)

// view edits a saved view. Its query then finds what was redacted, too: the same mark stands in tasks.
func (x *editor) view(rows *sql.Rows) (any, func(t Tx) error, error) {
	var id int64
	var name, query string
	if err := rows.Scan(&id, &name, &query); err != nil {
		return nil, nil, err
	}
	newName, newQuery := x.Text(name), x.Query(query)
	if newName == name && newQuery == query {
		return id, nil, nil
	}
	x.done.Views++
	return id, func(t Tx) error {
		return t.Exec(`UPDATE views SET name = ?, query = ? WHERE view = ?`, newName, newQuery, id)
	}, nil
}

func (x *editor) mark(rows *sql.Rows) (any, func(t Tx) error, error) {
	var id int64
	var texts, edited [4]string
	if err := rows.Scan(&id, &texts[0], &texts[1], &texts[2], &texts[3]); err != nil {
		return nil, nil, err
	}
	for i, s := range texts {
		edited[i] = x.Text(s)
	}
	if edited == texts {
		return id, nil, nil
	}
	x.done.Marks++
	return id, func(t Tx) error {
		return t.Exec(`UPDATE marks SET text = ?, link = ?, service = ?, version = ? WHERE mark = ?`, edited[0], edited[1], edited[2], edited[3], id)
	}, nil
}

func (x *editor) alertRule(rows *sql.Rows) (any, func(t Tx) error, error) {
	var id int64
	var name string
	var definition []byte
	if err := rows.Scan(&id, &name, &definition); err != nil {
		return nil, nil, err
	}
	edited, changed := x.object(definition)
	if shown := x.Text(name); shown != name {
		name, changed = shown, true
	}
	if !changed {
		return id, nil, nil
	}
	x.done.Alerts++
	return id, func(t Tx) error {
		return t.Exec(`UPDATE alert_rules SET name = ?, definition = ? WHERE rule = ?`, name, edited, id)
	}, nil
}

func (x *editor) alertFiring(rows *sql.Rows) (any, func(t Tx) error, error) {
	var id int64
	var name string
	var evidence []byte
	if err := rows.Scan(&id, &name, &evidence); err != nil {
		return nil, nil, err
	}
	edited, changed := x.object(evidence)
	if shown := x.Text(name); shown != name {
		name, changed = shown, true
	}
	if !changed {
		return id, nil, nil
	}
	x.done.Alerts++
	return id, func(t Tx) error {
		return t.Exec(`UPDATE alert_firings SET name = ?, evidence = ? WHERE firing = ?`, name, edited, id)
	}, nil
}

func (x *editor) alertRecord(rows *sql.Rows) (any, func(t Tx) error, error) {
	var at int64
	var record []byte
	if err := rows.Scan(&at, &record); err != nil {
		return nil, nil, err
	}
	edited, err := x.Record(record)
	if err != nil {
		return at, nil, unreadable{err}
	}
	if bytes.Equal(edited, record) {
		return at, nil, nil
	}
	x.done.Alerts++
	return at, func(t Tx) error { return t.Exec(`UPDATE alert_records SET record = ? WHERE at = ?`, edited, at) }, nil
}

// object edits the texts in a JSON object, and reports whether one has changed.
func (x *editor) object(text []byte) (edited []byte, changed bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return text, false
	}
	for name, value := range fields {
		var s string
		if json.Unmarshal(value, &s) != nil {
			continue
		}
		edit := x.Text
		if name == "query" {
			edit = x.Query
		}
		if shown := edit(s); shown != s {
			fields[name], _ = json.Marshal(shown) // valid JSON
			changed = true
		}
	}
	if !changed {
		return text, false
	}
	edited, err := json.Marshal(fields)
	if err != nil {
		return text, false
	}
	return edited, true
}
