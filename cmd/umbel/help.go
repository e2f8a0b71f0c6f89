package main

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// helpWidth is how long lines of help are, in columns.
const helpWidth = 100

// path is the command as it is typed.
func (c *command) path() string {
	if c.parent == nil {
		return c.name
	}
	return c.parent.path() + " " + c.name
}

// writeHelp explains the command.
func (c *command) writeHelp(w io.Writer) error {
	var b strings.Builder
	fmt.Fprint(&b, "Usage: ", c.path())
	if len(c.commands) > 0 {
		b.WriteString(" <command>")
	}
	var arguments, flags, commands [][2]string
	for _, f := range c.args {
		name := "[<" + f.name + ">]"
		if f.value.Kind() == reflect.Slice {
			name = "[<" + f.name + "> ...]"
		}
		fmt.Fprint(&b, " ", name)
		arguments = append(arguments, [2]string{name, f.field.Tag.Get("help")})
	}
	fmt.Fprintf(&b, " [flags]\n\n%s\n", c.help)
	flags = append(flags, [2]string{"-h, --help", "Show this help."})
	for p := c; p != nil; p = p.parent {
		for _, f := range p.flags {
			flags = append(flags, [2]string{f.usage(), f.help()})
		}
	}
	for _, s := range c.commands {
		for _, leaf := range slices.Concat([]*command{s}, s.commands) {
			if len(leaf.commands) == 0 {
				commands = append(commands, [2]string{strings.TrimPrefix(leaf.path(), c.path()+" "), leaf.help})
			}
		}
	}
	section(&b, "Arguments", arguments)
	section(&b, "Flags", flags)
	section(&b, "Commands", commands)
	if len(commands) > 0 {
		fmt.Fprintf(&b, "\nRun \"%s <command> --help\" for the flags of a command.\n", c.path())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// usage is the flag with a placeholder for its value.
func (f *flag) usage() string {
	tag := f.field.Tag
	if f.value.Kind() == reflect.Bool {
		if _, negatable := tag.Lookup("negatable"); negatable {
			return "--[no-]" + f.name
		}
		return "--" + f.name
	}
	value := tag.Get("default")
	if value != "" && f.value.Kind() == reflect.String {
		value = `"` + value + `"`
	}
	return "--" + f.name + "=" + cmp.Or(tag.Get("placeholder"), value, strings.ToUpper(f.name))
}

// help is the text of a flag, with its environment variables.
func (f *flag) help() string {
	text := f.field.Tag.Get("help")
	env := f.field.Tag.Get("env")
	if env == "" {
		return text
	}
	env = " ($" + strings.ReplaceAll(env, ",", ", $") + ")"
	if rest, ok := strings.CutSuffix(text, "."); ok {
		return rest + env + "."
	}
	return text + env
}

// section writes names with texts beside them.
func section(b *strings.Builder, title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	widest := 0
	for _, row := range rows {
		if len(row[0]) <= helpWidth/3 {
			widest = max(widest, len(row[0]))
		}
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	for _, row := range rows {
		at := 2 + len(row[0])
		b.WriteString("  " + row[0])
		if at > widest+2 {
			b.WriteByte('\n')
			at = 0
		}
		b.WriteString(strings.Repeat(" ", widest+4-at))
		at = widest + 4
		for i, word := range strings.Fields(row[1]) {
			switch {
			case i > 0 && at+1+len(word) > helpWidth:
				b.WriteString("\n" + strings.Repeat(" ", widest+4))
				at = widest + 4
			case i > 0:
				b.WriteByte(' ')
				at++
			}
			b.WriteString(word)
			at += len(word)
		}
		b.WriteByte('\n')
	}
}
