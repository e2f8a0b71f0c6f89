package floweroptions

import (
	"fmt"
	"strings"

	"github.com/umbelhq/umbel/state/query"
)

// celeryOption is one of the command celery itself.
type celeryOption struct {
	names []string
	value bool // takes one
}

func celeryOptions() []celeryOption {
	return []celeryOption{
		{[]string{"-A", "--app"}, true},
		{[]string{"-b", "--broker"}, true},
		{[]string{"--result-backend"}, true},
		{[]string{"--loader"}, true},
		{[]string{"--config"}, true},
		{[]string{"--workdir"}, true},
		{[]string{"-C", "--no-color"}, false},
		{[]string{"-q", "--quiet"}, false},
		{[]string{"--skip-checks"}, false},
	}
}

// Split returns where the word flower is in a command line that may begin with options of Celery and others that take
// a value, negative if it is another command's.
func Split(args []string, takesValue func(flag string) bool) int {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") || arg == "-" || arg == "--" {
			if arg == "flower" {
				return i
			}
			return -1
		}
		o, name, _, inline := celeryArgument(arg)
		if inline {
			continue
		}
		if o != nil && o.value || o == nil && takesValue(name) {
			i++
		}
	}
	return -1
}

// celeryArgument splits an argument that begins with a hyphen: -b URL, -bURL, --broker=URL. o is nil if it is not Celery's.
func celeryArgument(arg string) (o *celeryOption, name, value string, inline bool) {
	name, value, inline = strings.Cut(arg, "=")
	if !strings.HasPrefix(arg, "--") && len(arg) > 2 {
		name, value, inline = arg[:2], strings.TrimPrefix(arg[2:], "="), true
	}
	for _, o := range celeryOptions() {
		for _, n := range o.names {
			if n == name {
				return &o, n, value, inline
			}
		}
	}
	return nil, name, value, inline
}

// commandLine reads Celery's options and Flower's. Flower itself drops what it does not know.
func (r *reader) commandLine() error {
	args := r.in.Args
	seen := false // the word flower
	for i := 0; i < len(args); i++ {
		arg := args[i]
		next := func() (string, bool) {
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				return args[i], true
			}
			return "", false
		}
		if !strings.HasPrefix(arg, "-") || strings.Trim(arg, "-") == "" {
			if arg == "flower" && !seen {
				seen = true
			} else {
				r.warn("%s is ignored: write values as --name=value", arg)
			}
			continue
		}
		name, text, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if o, ok := find(r.options, name); ok && !o.Variable {
			if err := r.argument(o, text, inline, next); err != nil {
				return err
			}
			continue
		}
		if name == "help" && !inline {
			r.s.Help = true
			return nil
		}
		if err := r.others(arg, next); err != nil {
			return err
		}
	}
	return nil
}

// argument takes an option of Flower.
func (r *reader) argument(o Option, text string, inline bool, next func() (string, bool)) error {
	flag := "--" + o.Name
	if !inline && o.Kind == Bool {
		text = "true"
	} else if !inline {
		var ok bool
		if text, ok = next(); !ok {
			return fmt.Errorf("%s needs a value: %s=VALUE", flag, flag)
		}
	}
	value, err := o.parse(text)
	if err != nil {
		return fmt.Errorf("%s %w", flag, err)
	}
	r.set(Setting{o, value, CommandLine, flag})
	return nil
}

// others takes an option of Celery, of somebody else, or of nobody.
func (r *reader) others(arg string, next func() (string, bool)) error {
	if o, name, value, inline := celeryArgument(arg); o != nil {
		if o.value && !inline {
			var ok bool
			if value, ok = next(); !ok {
				return fmt.Errorf("%s needs a value", name)
			}
		}
		r.celery(o.names[0], value)
		return nil
	}
	name, _, inline := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	if r.in.Other != nil {
		if takesValue, ok := r.in.Other(name); ok {
			r.s.Rest = append(r.s.Rest, "--"+strings.TrimLeft(arg, "-"))
			if takesValue && !inline {
				if value, ok := next(); ok {
					r.s.Rest = append(r.s.Rest, value)
				}
			}
			return nil
		}
	}
	hint := ""
	if near := query.Nearest(strings.ReplaceAll(name, "-", "_"), names(r.options)); near != "" {
		hint = ": is it --" + near + "?"
	}
	r.warn("%s is ignored, as Flower does: there is no such option%s", strings.SplitN(arg, "=", 2)[0], hint)
	return nil
}

// celery takes an option of the command celery.
func (r *reader) celery(name, value string) {
	switch name {
	case "-A":
		r.s.App = value
	case "--config":
		r.s.Config = value
	case "-b":
		r.s.Broker = value
	case "--result-backend":
		r.s.ResultBackend = value
	case "-q":
		r.s.Quiet = true
	case "--loader", "--workdir":
		r.warn("%s is ignored: Umbel reads no Python", name)
	}
}
