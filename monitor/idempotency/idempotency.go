// Package idempotency recognises calls of one task with equal arguments, and lets them take effect once.
//
// Two calls are equal if their fingerprints are: a digest of the name of the task and of its arguments as canonical
// JSON, which is byte for byte what Python writes with
//
//	json.dumps(kwargs, sort_keys=True, separators=(",", ":"))
//
// so that programs in Go and in Python agree. [Fingerprint] is of keyword arguments, [Call] of a whole call, and a
// [Fingerprinter] leaves out fields that differ from call to call.
//
// The package needs nothing else of Umbel. It reads no message, asks no broker and decides nothing about tasks.
package idempotency

import (
	"encoding/hex"
	"fmt"
)

// Prefix begins every fingerprint.
const Prefix = "celery:exec:"

// Fingerprint returns [Prefix], the name of the task, a colon and the SHA-256 of kwargs as canonical JSON, in 64
// hexadecimal digits. kwargs is an object, or null for none. The error is an [*Error].
func Fingerprint(task string, kwargs Value) (string, error) {
	return new(Fingerprinter).Fingerprint(task, kwargs)
}

// Call returns the fingerprint of a whole call. Without positional arguments it is that of kwargs alone, so it equals
// what [Fingerprint] returns; with some, it is of the canonical JSON of [args, kwargs]. args is an array and kwargs an
// object, or null for none. The error is an [*Error].
func Call(task string, args, kwargs Value) (string, error) {
	return new(Fingerprinter).Call(task, args, kwargs)
}

// Options say what of a call counts. The zero value is everything, as it is.
type Options struct {
	// Only has the paths of the fields that count; without any, all do. Without has those that do not count, whatever
	// Only says. [Fingerprinter.Reduce] tells what paths look like. At most [MaxPaths] altogether.
	Only, Without []string
	// Precision is how many decimals of floating-point numbers count, 0 to 15: they are rounded as Python's
	// round(x, n) does. nil: all. Integers stay as they are, and so do NaN and infinities.
	Precision *int
}

// maxPrecision is the number of decimal digits that every float64 keeps.
const maxPrecision = 15

// Fingerprinter makes fingerprints of what counts. The zero value counts everything. It is safe for concurrent use.
type Fingerprinter struct {
	only, without *step
	precision     *int
}

// New returns a Fingerprinter, or an error that names the option that is wrong.
func New(o Options) (*Fingerprinter, error) {
	if n := len(o.Only) + len(o.Without); n > MaxPaths {
		return nil, fmt.Errorf("%d paths: at most %d are allowed", n, MaxPaths)
	}
	if o.Precision != nil && (*o.Precision < 0 || *o.Precision > maxPrecision) {
		return nil, fmt.Errorf("precision %d: must be 0 to %d", *o.Precision, maxPrecision)
	}
	only, err := parsePaths(o.Only)
	if err != nil {
		return nil, err
	}
	without, err := parsePaths(o.Without)
	if err != nil {
		return nil, err
	}
	return &Fingerprinter{only: only, without: without, precision: o.Precision}, nil
}

// Fingerprint is the function [Fingerprint] of what counts of kwargs.
func (f *Fingerprinter) Fingerprint(task string, kwargs Value) (string, error) {
	return f.Call(task, Value{}, kwargs)
}

// Call is the function [Call] of what counts. Positional arguments that do not count are as if they were absent.
func (f *Fingerprinter) Call(task string, args, kwargs Value) (string, error) {
	args, kwargs, err := f.Reduce(args, kwargs)
	if err != nil {
		return "", err
	}
	text := kwargs
	if len(elements(&args)) > 0 {
		text = Value{kind: isArray, parts: &parts{items: []Value{args, kwargs}}}
	}
	return Prefix + task + ":" + hex.EncodeToString(text.digest()), nil
}

// Reduce returns what counts of a call, an array and an object. A path that begins with a key leads into kwargs, one
// that begins with an index into args:
//
//	order.id          the field id of the field order
//	lines[*].price    the field price of each element of lines
//	[0].at            the field at of the first positional argument
//	["x.y"]           a key that is not only letters, digits, _ and -, as a string of JSON
//
// A path that leads nowhere is no error. With Only, a container on the way keeps the parts that count, and any other
// value on the way does not count. Elements that do not count are left out, and those after them move up.
func (f *Fingerprinter) Reduce(args, kwargs Value) (Value, Value, error) {
	args, err := container(args, isArray, "args", "an array")
	if err != nil {
		return Value{}, Value{}, err
	}
	kwargs, err = container(kwargs, isObject, "kwargs", "an object")
	if err != nil {
		return Value{}, Value{}, err
	}
	args, kwargs = f.reduce(args), f.reduce(kwargs)
	return args, kwargs, nil
}

// container checks that v is one of the kind; null is an empty one.
func container(v Value, want kind, name, description string) (Value, error) {
	switch v.kind {
	case want:
		return v, nil
	case isNull:
		return Value{kind: want}, nil
	default:
		return Value{}, &Error{Path: name, Message: "must be " + description}
	}
}

func (f *Fingerprinter) reduce(v Value) Value {
	if f.only != nil {
		v, _ = keep(v, []*step{f.only})
	}
	if f.without != nil {
		v = drop(v, []*step{f.without})
	}
	if f.precision != nil {
		v = round(v, *f.precision)
	}
	return v
}
