package idempotency

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"
)

// ValueOf returns a Go value as Python would have it: nil, booleans, integers (also [*big.Int]), floats, strings, slices,
// arrays, maps, [json.Number], [json.RawMessage], a Value, and pointers to and interfaces of these. A float stays one:
// float64(2) is 2.0. Keys of maps may be strings, integers, floats, booleans and nil, which Python's json turns into
// text; it cannot sort text, numbers and None among each other, so such a map is refused. So is anything else, such as
// a struct, []byte and text that is not UTF-8: marshal a struct, and Parse what that gives. The error is an [*Error].
func ValueOf(v any) (Value, error) {
	c := converter{}
	value, err := c.value(reflect.ValueOf(v), 0)
	if err != nil {
		return Value{}, err
	}
	return value, nil
}

// converter counts what it has converted.
type converter struct{ values, bytes int }

func (c *converter) text(s string) (string, *Error) {
	if c.bytes += len(s) + 2; c.bytes > MaxBytes {
		return "", tooLong()
	}
	if !utf8.ValidString(s) {
		return "", &Error{Message: "must be UTF-8"}
	}
	return s, nil
}

func (c *converter) value(v reflect.Value, depth int) (Value, *Error) {
	if depth > MaxDepth {
		return Value{}, tooDeep() // also what contains itself
	}
	if c.values++; c.values > MaxValues {
		return Value{}, tooMany()
	}
	if !v.IsValid() {
		return Value{}, nil
	}
	if value, ok, err := c.special(v); ok || err != nil {
		return value, err
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return Value{}, nil
		}
		c.values--
		return c.value(v.Elem(), depth+1)
	case reflect.Bool:
		if v.Bool() {
			return Value{kind: isTrue}, nil
		}
		return Value{kind: isFalse}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Value{kind: isInt, text: strconv.FormatInt(v.Int(), 10)}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return Value{kind: isInt, text: strconv.FormatUint(v.Uint(), 10)}, nil
	case reflect.Float32, reflect.Float64:
		return Value{kind: isFloat, number: v.Float()}, nil
	case reflect.String:
		s, err := c.text(v.String())
		return Value{kind: isText, text: s}, err
	case reflect.Slice, reflect.Array:
		return c.array(v, depth)
	case reflect.Map:
		return c.object(v, depth)
	default:
		return Value{}, &Error{Message: fmt.Sprintf("is a %s, which JSON does not have", v.Type())}
	}
}

// special converts types that are not what their kind says.
func (c *converter) special(v reflect.Value) (Value, bool, *Error) {
	var raw []byte
	switch x := v.Interface().(type) {
	case Value:
		if c.values += count(&x) - 1; c.values > MaxValues {
			return Value{}, false, tooMany()
		}
		return x, true, nil
	case json.RawMessage:
		if raw = x; x == nil {
			return Value{}, true, nil
		}
	case json.Number:
		raw = []byte(x)
	case *big.Int:
		if x == nil {
			return Value{}, true, nil
		}
		if x.BitLen() > MaxBytes/8 { // writing it takes more than linear time
			return Value{}, false, tooLong()
		}
		raw = x.Append(nil, 10)
	default:
		return Value{}, false, nil
	}
	if c.bytes += len(raw); c.bytes > MaxBytes {
		return Value{}, false, tooLong()
	}
	p := newParser(string(raw))
	p.values = c.values - 1
	value, err := p.value(0)
	if err == nil && p.skip() < len(p.s) {
		err = p.expected("nothing more")
	}
	c.values = p.values
	return value, true, err
}

func (c *converter) array(v reflect.Value, depth int) (Value, *Error) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return Value{}, nil
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		return Value{}, &Error{Message: "is bytes, which JSON does not have"}
	}
	out := Value{kind: isArray, parts: new(parts)}
	for i := range v.Len() {
		item, err := c.value(v.Index(i), depth+1)
		if err != nil {
			return Value{}, err.within(fmt.Sprintf("[%d]", i))
		}
		out.items = append(out.items, item)
	}
	return out, nil
}

func (c *converter) object(v reflect.Value, depth int) (Value, *Error) {
	if v.IsNil() {
		return Value{}, nil
	}
	if v.Len() > MaxValues {
		return Value{}, tooMany()
	}
	members := make([]member, 0, v.Len())
	for key, item := range v.Seq2() {
		m, err := c.key(key)
		if err != nil {
			return Value{}, err
		}
		m.value = item
		members = append(members, m)
	}
	if err := sortMembers(members); err != nil {
		return Value{}, err
	}
	out := Value{kind: isObject, parts: new(parts)}
	for _, m := range members {
		item, err := c.value(m.value, depth+1)
		if err != nil {
			return Value{}, err.within(spell(m.key))
		}
		out.keys, out.items = append(out.keys, m.key), append(out.items, item)
	}
	return out, nil
}

// member is one of a map. Its key is sorted by what it was, and written as text.
type member struct {
	class  string // what Python calls what sorts with it
	number *big.Float
	nan    bool
	key    string
	value  reflect.Value
}

// key converts the key of a map as Python's json does.
func (c *converter) key(key reflect.Value) (member, *Error) {
	for key.Kind() == reflect.Interface && !key.IsNil() {
		key = key.Elem()
	}
	switch key.Kind() {
	case reflect.String:
		s, err := c.text(key.String())
		if err != nil {
			err.Message = "has a key that is not UTF-8, or too long"
		}
		return member{class: "str", key: s}, err
	case reflect.Interface:
		return member{class: "None", key: "null"}, nil
	case reflect.Bool:
		m := member{class: "numbers", key: strconv.FormatBool(key.Bool()), number: new(big.Float)}
		if key.Bool() {
			m.number.SetInt64(1)
		}
		return m, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return member{class: "numbers", key: strconv.FormatInt(key.Int(), 10), number: new(big.Float).SetInt64(key.Int())}, nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return member{class: "numbers", key: strconv.FormatUint(key.Uint(), 10), number: new(big.Float).SetUint64(key.Uint())}, nil
	case reflect.Float32, reflect.Float64:
		m := member{class: "numbers", key: string(appendFloat(nil, key.Float()))}
		if m.nan = key.Float() != key.Float(); !m.nan {
			m.number = big.NewFloat(key.Float())
		}
		return m, nil
	default:
		return member{}, &Error{Message: fmt.Sprintf("has a key that is a %s, which cannot be one in JSON", key.Type())}
	}
}

// sortMembers sorts them as Python does, by what keys were and not by how they are written.
func sortMembers(members []member) *Error {
	for _, m := range members {
		if first := members[0]; m.class != first.class {
			a, b := first.class, m.class
			return &Error{Message: fmt.Sprintf("has keys that are %s and keys that are %s, which Python cannot sort", min(a, b), max(a, b))}
		}
		if m.nan && len(members) > 1 {
			return &Error{Message: "has NaN as one of its keys, which Python cannot sort"}
		}
	}
	if len(members) > 0 && members[0].class == "numbers" && !members[0].nan {
		slices.SortFunc(members, func(a, b member) int { return a.number.Cmp(b.number) })
		for i := range members[1:] {
			if members[i].number.Cmp(members[i+1].number) == 0 {
				a, b := members[i].key, members[i+1].key
				return &Error{Message: fmt.Sprintf("has the keys %s and %s, which are one for Python", min(a, b), max(a, b))}
			}
		}
		return nil
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.key, b.key) })
	return nil
}
