package sqlite

import (
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/umbelhq/umbel/monitor/history/where"
	"github.com/umbelhq/umbel/state/query"
)

// IDs compiles values of a column that holds ids.
func (*compiler) IDs(column string, values []query.Value) where.Condition {
	return idCondition(column, values)
}

func idCondition(column string, values []query.Value) where.Condition {
	if len(values) > maxIDTerms && where.AllExact(values) {
		return idsCondition(column, values)
	}
	is := func(column, id string) where.Condition { return where.Exactly(column+" = ?", idValue(id)) }
	return where.IDs(column, values, is, prefixCondition)
}

// maxIDTerms is how many ids are compared one by one.
const maxIDTerms = 50

// idsCondition compiles exact values of a column that holds ids: UUIDs as blobs, and others as texts.
func idsCondition(column string, values []query.Value) where.Condition {
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
	return where.Exactly(column+" IN (SELECT unhex(value) FROM json_each(?) UNION ALL SELECT value FROM json_each(?))", list(uuids), list(texts))
}

// prefixCondition selects ids with a prefix: a range of UUIDs and one of other ids.
func prefixCondition(column, prefix string) where.Condition {
	if prefix == "" {
		return where.AtLeast(column + " IS NOT NULL")
	}
	list := []where.Condition{where.Exactly(column+" >= ? AND "+column+" < ?", prefix, after(prefix))}
	if low, high, ok := uuidRange(prefix); ok {
		list = append(list, where.Exactly(column+" BETWEEN ? AND ?", low, high))
	}
	return where.Or(list...)
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

// anyCasePrefix selects ids with a prefix, ignoring case. Texts sort before blobs, so it reads few rows unless most ids are
// no UUIDs.
func anyCasePrefix(prefix string) []where.Condition {
	head, _, _ := strings.Cut(prefix, "*")
	head, _, _ = strings.Cut(head, "\x00") // LIKE ends there
	like := strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || r == 'k' || r == 'i' { // lower case of non-ASCII letters, too
			return '_'
		}
		return r
	}, strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(head))
	list := []where.Condition{where.AtLeast(`id < x'' AND id LIKE ? ESCAPE '\'`, like+"%")}
	if low, high, ok := uuidRange(head); ok {
		list = append(list, where.AtLeast("id BETWEEN ? AND ?", low, high))
	}
	return list
}
