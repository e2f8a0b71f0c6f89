package main

import (
	"cmp"
	"encoding"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// command is a command of the command line, read from the fields of a struct. Tags of a field:
//
//	cmd          it is a command; with default:"…", the one that runs if none is named
//	embed        its fields are those of the struct, with prefix before their names
//	arg          it is a positional argument, a string or the []string of all that remain
//	name         of the flag, else the field's in kebab case
//	env          variables to read the value from if the flag is not given, separated by commas; the first one set counts
//	default      value if neither is given
//	enum         allowed values, separated by commas
//	negatable    --no-NAME sets it to false
//	help, placeholder
//
// A value is a string, number, bool, time.Duration, encoding.TextUnmarshaler, a pointer to one or a slice of them.
//
// A library that calls methods by name, as most of this kind do, makes the linker keep every exported method of every type:
// 9 MB of the binary.
type command struct {
	name, help string
	parent     *command
	target     any // pointer to the struct
	flags      []*flag
	args       []*flag
	commands   []*command
	fallback   *command // runs if no other is named
}

// flag is a flag or an argument.
type flag struct {
	name  string
	field reflect.StructField
	value reflect.Value
	set   bool // on the command line
}

// newCommand reads the fields of the struct that target points to.
func newCommand(name, help string, parent *command, target any) *command {
	c := &command{name: name, help: help, parent: parent, target: target}
	c.read(reflect.ValueOf(target).Elem(), "")
	return c
}

func (c *command) read(v reflect.Value, prefix string) {
	for field, value := range v.Fields() {
		tag := field.Tag
		has := func(key string) bool { _, ok := tag.Lookup(key); return ok }
		f := &flag{name: prefix + cmp.Or(tag.Get("name"), kebab(field.Name)), field: field, value: value}
		switch {
		case has("embed"):
			c.read(value, prefix+tag.Get("prefix"))
		case has("cmd"):
			sub := newCommand(f.name, tag.Get("help"), c, value.Addr().Interface())
			c.commands = append(c.commands, sub)
			if has("default") {
				c.fallback = sub
			}
		case has("arg"):
			c.args = append(c.args, f)
		default:
			c.flags = append(c.flags, f)
		}
	}
}

// kebab returns KeepEvents as keep-events.
func kebab(s string) string {
	var b strings.Builder
	for i, r := range s {
		if i > 0 && unicode.IsUpper(r) && unicode.IsLower(rune(s[i-1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// parse sets flags and arguments, and returns the command to run. If help is asked for, it returns the command to explain.
func (c *command) parse(args []string) (run *command, help bool, err error) {
	plain := false
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case plain || arg == "-" || !strings.HasPrefix(arg, "-"):
			if c, err = c.take(arg); err != nil {
				return nil, false, err
			}
		case arg == "--":
			plain = true
		case arg == "-h" || arg == "--help":
			return c, true, nil
		default:
			if c, args, err = c.takeFlag(arg, args); err != nil {
				return nil, false, err
			}
		}
	}
	if c.fallback != nil {
		c = c.fallback
	}
	if len(c.commands) > 0 {
		return nil, false, fmt.Errorf("%s needs a command: see %[1]s --help", c.path())
	}
	for p := c; p != nil; p = p.parent {
		for _, f := range p.flags {
			if err := f.complete(); err != nil {
				return nil, false, err
			}
		}
	}
	return c, false, nil
}

// take takes the name of a command or a positional argument.
func (c *command) take(arg string) (*command, error) {
	if i := slices.IndexFunc(c.commands, func(s *command) bool { return s.name == arg }); i >= 0 {
		return c.commands[i], nil
	}
	for _, f := range c.args {
		if list := f.value.Kind() == reflect.Slice; list || !f.set {
			f.set = true
			return c, f.parse(arg, false)
		}
	}
	return nil, fmt.Errorf("unexpected argument %s", arg)
}

// takeFlag takes a flag and its value.
func (c *command) takeFlag(arg string, rest []string) (*command, []string, error) {
	name, value, given := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	f, negated := c.flag(name)
	if f == nil && c.fallback != nil {
		if f, negated = c.fallback.flag(name); f != nil {
			c = c.fallback
		}
	}
	if f == nil || !strings.HasPrefix(arg, "--") {
		return nil, nil, fmt.Errorf("unknown flag %s", arg)
	}
	switch {
	case given:
	case f.value.Kind() == reflect.Bool:
		value = strconv.FormatBool(!negated)
	case len(rest) == 0 || strings.HasPrefix(rest[0], "--"):
		return nil, nil, fmt.Errorf("--%s needs a value", f.name)
	default:
		value, rest = rest[0], rest[1:]
	}
	if f.value.Kind() == reflect.Slice && !f.set {
		f.value.SetZero()
	}
	f.set = true
	if err := f.parse(value, true); err != nil {
		return nil, nil, fmt.Errorf("--%s%w", f.name, err)
	}
	return c, rest, nil
}

// flag returns a flag of the command or of one around it, nil if there is none.
func (c *command) flag(name string) (f *flag, negated bool) {
	for ; c != nil; c = c.parent {
		for _, f := range c.flags {
			_, negatable := f.field.Tag.Lookup("negatable")
			if f.name == name {
				return f, false
			}
			if negatable && "no-"+f.name == name {
				return f, true
			}
		}
	}
	return nil, false
}

// complete sets a flag that was not given from the environment or to its default.
func (f *flag) complete() error {
	if f.set {
		return nil
	}
	for name := range strings.SplitSeq(f.field.Tag.Get("env"), ",") {
		if value, ok := os.LookupEnv(name); ok && name != "" {
			if err := f.parse(value, true); err != nil {
				return fmt.Errorf("--%s%w (from $%s)", f.name, err, name)
			}
			return nil
		}
	}
	if value, ok := f.field.Tag.Lookup("default"); ok {
		return f.parse(value, true)
	}
	return nil
}

// parse sets the value, or adds to it if it is a slice: all that text lists, if split. An error begins with what follows the
// name of the flag.
func (f *flag) parse(text string, split bool) error {
	if enum := f.field.Tag.Get("enum"); enum != "" && !slices.Contains(strings.Split(enum, ","), text) {
		return fmt.Errorf(` must be one of "%s" but got %q`, strings.ReplaceAll(enum, ",", `","`), text)
	}
	if f.value.Kind() != reflect.Slice {
		return setValue(f.value, text)
	}
	parts := []string{text}
	if split {
		parts = strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
	}
	for _, part := range parts {
		item := reflect.New(f.value.Type().Elem()).Elem()
		if err := setValue(item, part); err != nil {
			return err
		}
		f.value.Set(reflect.Append(f.value, item))
	}
	return nil
}

func setValue(v reflect.Value, text string) error {
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	var err error
	switch target := v.Addr().Interface().(type) {
	case encoding.TextUnmarshaler:
		if err := target.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf(": %w", err)
		}
		return nil
	case *time.Duration:
		*target, err = time.ParseDuration(text)
	case *string:
		*target = text
	case *bool:
		*target, err = strconv.ParseBool(text)
	case *int:
		*target, err = strconv.Atoi(text)
	case *uint64:
		*target, err = strconv.ParseUint(text, 10, 64)
	case *float64:
		*target, err = strconv.ParseFloat(text, 64)
	default:
		panic("flag of type " + v.Type().String())
	}
	if err != nil {
		return fmt.Errorf(": %q is not a valid %s", text, v.Type())
	}
	return nil
}
