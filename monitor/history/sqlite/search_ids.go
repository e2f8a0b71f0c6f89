package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/umbelhq/umbel/state/fingerprint"
	"github.com/umbelhq/umbel/state/query"
)

// idCondition compiles values of a column that holds ids.
func idCondition(column string, values []query.Value) condition {
	if len(values) > maxIDTerms && !slices.ContainsFunc(values, func(v query.Value) bool { return v.Match != query.Exact }) {
		return idsCondition(column, values)
	}
	list := make([]condition, len(values))
	for i, v := range values {
		switch {
		case v.Match == query.Exact:
			list[i] = condition{column + " = ?", []any{idValue(v.Text)}, true}
		case v.Match == query.Pattern && v.Text == "*":
			list[i] = condition{sql: column + " IS NOT NULL", exact: true}
		case v.Match == query.Pattern:
			head, rest, _ := strings.Cut(v.Text, "*")
			list[i] = prefixCondition(column, head)
			list[i].exact = list[i].exact && rest == ""
		default:
			list[i] = condition{sql: column + " IS NOT NULL"}
		}
	}
	return join("OR", list)
}

// maxIDTerms is how many ids are compared one by one.
const maxIDTerms = 50

// idsCondition compiles exact values of a column that holds ids: UUIDs as blobs, and others as texts.
func idsCondition(column string, values []query.Value) condition {
	var uuids, texts []string
	for _, v := range values {
		if b, ok := idValue(v.Text).([]byte); ok {
			uuids = append(uuids, hex.EncodeToString(b))
		} else {
			texts = append(texts, v.Text)
		}
	}
	list := func(texts []string) any {
		b, err := json.Marshal(texts)
		if err != nil {
			panic(err) // texts only
		}
		return string(b)
	}
	return condition{
		column + " IN (SELECT unhex(value) FROM json_each(?) UNION ALL SELECT value FROM json_each(?))", []any{list(uuids), list(texts)}, true,
	}
}

// prefixCondition selects ids with a prefix: a range of UUIDs and one of other ids.
func prefixCondition(column, prefix string) condition {
	if prefix == "" {
		return condition{sql: column + " IS NOT NULL"}
	}
	list := []condition{{column + " >= ? AND " + column + " < ?", []any{prefix, after(prefix)}, true}}
	if low, high, ok := uuidRange(prefix); ok {
		list = append(list, condition{column + " BETWEEN ? AND ?", []any{low, high}, true})
	}
	return join("OR", list)
}

// after returns a value that sorts after all texts with a prefix.
func after(prefix string) any {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return []byte{} // blobs sort after texts
}

// uuidRange returns the first and the last UUID with a prefix, as stored, false if there is none.
func uuidRange(prefix string) (low, high []byte, ok bool) {
	if len(prefix) > 36 {
		return nil, nil, false
	}
	digits := make([]byte, 0, 32)
	for i := range len(prefix) {
		c := prefix[i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		switch {
		case dash && c == '-':
		case !dash && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f'):
			digits = append(digits, c)
		default:
			return nil, nil, false
		}
	}
	fill := func(with string) []byte {
		b, err := hex.DecodeString(string(digits) + strings.Repeat(with, 32-len(digits)))
		if err != nil {
			panic(err) // digits only
		}
		return b
	}
	return fill("0"), fill("f"), true
}

// failureCondition compiles ids of failure groups.
func failureCondition(values []query.Value) condition {
	list := make([]condition, len(values))
	for i, v := range values {
		id, ok := fingerprint.ParseID(v.Text)
		switch {
		case v.Match == query.Exact && ok:
			list[i] = condition{"failure = ?", []any{int64(id)}, true}
		case v.Match == query.Exact:
			list[i] = never
		default:
			list[i] = condition{sql: "failure IS NOT NULL", exact: isWildcard(v)}
		}
	}
	return join("OR", list)
}

// anyCasePrefix selects ids with a prefix, ignoring case. Texts sort before blobs, so it reads few rows unless most ids are
// no UUIDs.
func anyCasePrefix(prefix string) []condition {
	head, _, _ := strings.Cut(prefix, "*")
	head, _, _ = strings.Cut(head, "\x00") // LIKE ends there
	like := strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || r == 'k' || r == 'i' { // lower case of non-ASCII letters, too
			return '_'
		}
		return r
	}, strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(head))
	list := []condition{{`id < x'' AND id LIKE ? ESCAPE '\'`, []any{like + "%"}, false}}
	if low, high, ok := uuidRange(head); ok {
		list = append(list, condition{"id BETWEEN ? AND ?", []any{low, high}, false})
	}
	return list
}
