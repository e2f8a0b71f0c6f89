package celery

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// maxNesting bounds how deep values that are read as a whole may be nested.
const maxNesting = 64

var errDepth = errors.New("nested too deeply")

// value reads any value: nil, bool, int64, float64, string, []any or map[string]any. Numbers that JSON forbids
// are nil.
func (s *scanner) value() (any, error) { return s.nested(0) }

func (s *scanner) nested(depth int) (any, error) {
	if depth > maxNesting {
		return nil, errDepth
	}
	switch s.next() {
	case '{':
		return s.table(depth + 1)
	case '[':
		return s.array(depth + 1)
	case '"':
		return s.str()
	}
	raw, err := s.raw()
	if err != nil {
		return nil, err
	}
	switch raw {
	case "null":
		return nil, nil
	case "true", "false":
		return raw == "true", nil
	}
	return numberOf(raw), nil
}

// key reads the next key of an object whose bracket was read, and the colon after it. ok is false at the object's
// end. first says that no key was read before.
func (s *scanner) key(first bool) (key string, ok bool, err error) {
	switch {
	case s.accept('}'):
		return "", false, nil
	case !first && !s.accept(','):
		return "", false, errMalformed
	}
	if key, err = s.str(); err != nil {
		return "", false, err
	}
	if !s.accept(':') {
		return "", false, errMalformed
	}
	return key, true, nil
}

// object calls member with each key of an object, which must move past its value.
func (s *scanner) object(member func(key string) error) error {
	if !s.accept('{') {
		return errMalformed
	}
	for first := true; ; first = false {
		key, ok, err := s.key(first)
		if err != nil || !ok {
			return err
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

func (s *scanner) table(depth int) (map[string]any, error) {
	m := map[string]any{}
	err := s.object(func(key string) (err error) {
		m[key], err = s.nested(depth)
		return err
	})
	return m, err
}

func (s *scanner) array(depth int) ([]any, error) {
	s.at++
	list := []any{}
	if s.accept(']') {
		return list, nil
	}
	for {
		v, err := s.nested(depth)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if s.accept(']') {
			return list, nil
		}
		if !s.accept(',') {
			return nil, errMalformed
		}
	}
}

// numberOf is the value of a number: an int64 if it is one, else a float64, and nil for what JSON cannot say.
func numberOf(raw string) any {
	if !strings.ContainsAny(raw, ".eE") {
		if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
			return n
		}
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return f
}
