package main

import (
	"cmp"
	"encoding"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"
)

// newFlagSet returns the flags in the exported fields of a struct. Tags of a field:
//
//	name         of the flag, else the field's in kebab case
//	short        of a bool: the letter that stands for it
//	prefix       of the names of the fields of a struct
//	env          variables that set the flag, separated by commas; the first one that is set counts
//	default      value
//	enum         allowed values, separated by commas
//	negatable    --no-NAME sets it to false
//	help, placeholder
func newFlagSet(name string, fields any) *pflag.FlagSet {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {}
	addFlags(fs, reflect.ValueOf(fields).Elem(), "")
	return fs
}

func addFlags(fs *pflag.FlagSet, v reflect.Value, prefix string) {
	for field, value := range v.Fields() {
		if !field.Anonymous && !field.IsExported() {
			continue
		}
		tag := field.Tag
		if p, ok := tag.Lookup("prefix"); ok || field.Anonymous {
			addFlags(fs, value, prefix+p)
			continue
		}
		name, help := prefix+cmp.Or(tag.Get("name"), kebab(field.Name)), tag.Get("help")
		if env := tag.Get("env"); env != "" {
			help += " [$" + strings.ReplaceAll(env, ",", ", $") + "]"
		}
		switch p := value.Addr().Interface().(type) {
		case *string:
			fs.StringVar(p, name, "", help)
		case *[]string:
			fs.StringSliceVar(p, name, nil, help)
		case *bool:
			fs.BoolVarP(p, name, tag.Get("short"), false, help)
		case *int:
			fs.IntVar(p, name, 0, help)
		case *[]int:
			fs.IntSliceVar(p, name, nil, help)
		case *uint64:
			fs.Uint64Var(p, name, 0, help)
		case *float64:
			fs.Float64Var(p, name, 0, help)
		case *time.Duration:
			fs.DurationVar(p, name, 0, help)
		case encoding.TextUnmarshaler:
			fs.Func(name, help, func(text string) error { return p.UnmarshalText([]byte(text)) })
		case **size:
			fs.Func(name, help, func(text string) error {
				*p = new(size)
				return (*p).UnmarshalText([]byte(text))
			})
		default:
			panic(fmt.Sprintf("flag --%s has type %T", name, p))
		}
		f := fs.Lookup(name)
		f.Annotations = map[string][]string{"env": strings.Split(tag.Get("env"), ","), "enum": strings.Split(tag.Get("enum"), ",")}
		if f.DefValue = tag.Get("default"); f.DefValue != "" {
			_ = f.Value.Set(f.DefValue)
		}
		f.Value = placeholder{f.Value, tag.Get("placeholder")}
		if _, ok := tag.Lookup("negatable"); ok {
			fs.BoolFunc("no-"+name, "The same as --"+name+"=false.", func(string) error { return fs.Set(name, "false") })
		}
	}
}

// placeholder names the value of a flag in its help.
type placeholder struct {
	pflag.Value
	name string
}

// Type implements pflag.Value.
func (p placeholder) Type() string { return cmp.Or(p.name, p.Value.Type()) }

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

// parseFlags sets flags from args, and those that are not there from the environment.
func parseFlags(fs *pflag.FlagSet, args []string) error {
	err := fs.Parse(args)
	fs.VisitAll(func(f *pflag.Flag) {
		for _, name := range f.Annotations["env"] {
			text := os.Getenv(name)
			if text == "" || f.Changed || err != nil {
				continue
			}
			if e := fs.Set(f.Name, text); e != nil {
				err = fmt.Errorf("$%s: %w", name, e)
			}
		}
		if enum := f.Annotations["enum"]; len(enum) > 1 && err == nil && !slices.Contains(enum, f.Value.String()) {
			err = fmt.Errorf("--%s %s: must be one of %s", f.Name, f.Value, strings.TrimPrefix(strings.Join(enum, ", "), ", "))
		}
	})
	return err
}

// writeHelp explains a command, or lists all of them.
func writeHelp(w io.Writer, c command, fs *pflag.FlagSet) error {
	const width = 100
	usage := strings.TrimSpace(fs.Name() + " [flags] " + c.args)
	_, err := fmt.Fprintf(w, "Usage: %s\n\n%s\n\nFlags:\n%s", usage, c.help, fs.FlagUsagesWrapped(width))
	if c.name != "" || err != nil {
		return err
	}
	fmt.Fprintln(w, "\nCommands:")
	for _, c := range commands() {
		summary, _, _ := strings.Cut(c.help, "\n")
		fmt.Fprintf(w, "  %-14s %s\n", c.name, summary)
	}
	_, err = fmt.Fprintln(w, "\n\"umbel <command> --help\" lists the flags of a command.")
	return err
}
