package floweroptions

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/umbelhq/umbel/state/query"
)

// DefaultConfigFile is read if it exists; one that conf names must.
const DefaultConfigFile = "flowerconfig.py"

// Source is where a setting is from. A higher one wins.
type Source int

// The sources.
const (
	Environment Source = iota + 1
	ConfigFile
	CommandLine
)

// Setting is an option that is set.
type Setting struct {
	Option
	Value  any // by the kind: string, int, float64, bool, []string, []float64; nil for None
	Source Source
	// Origin names it in messages: --port, $FLOWER_PORT, or "flowerconfig.py line 3: port".
	Origin string
}

// Input is what Read reads.
type Input struct {
	Environ []string // as os.Environ returns it
	// Args is the command line, with Celery's options, if any, before the word flower. Nil is none: then no file is read
	// either.
	Args []string
	// ReadFile reads a file. Its error wraps fs.ErrNotExist if there is none.
	ReadFile func(name string) ([]byte, error)
	// Other reports whether others know an option, by its name with hyphens and without them before, and whether its value
	// may be in the next argument. Nil knows none.
	Other func(name string) (takesValue, ok bool)
}

// Settings is what Read returns.
type Settings struct {
	// App and Config are what -A and --config name, which only Python can read; Broker and ResultBackend the URLs of -b and
	// --result-backend.
	App, Config, Broker, ResultBackend string
	Quiet                              bool // -q
	Help                               bool // --help
	// Rest holds the options of others.
	Rest []string
	// Warnings are sentences, one for each thing that has no effect.
	Warnings []string

	list []Setting // the winners, in the order of Options
}

// Get returns the setting of an option, false if it is not set.
func (s *Settings) Get(name string) (Setting, bool) {
	i := slices.IndexFunc(s.list, func(x Setting) bool { return x.Name == name })
	if i < 0 || s.list[i].Value == nil {
		return Setting{}, false
	}
	return s.list[i], true
}

// All returns what is set.
func (s *Settings) All() []Setting { return slices.Clone(s.list) }

// Read reads all sources. Its error names the option, or the line of the file, that is wrong.
func Read(in Input) (*Settings, error) {
	r := reader{in: in, options: Options(), s: &Settings{}}
	if err := r.environ(); err != nil {
		return nil, err
	}
	if in.Args != nil {
		if err := r.commandLine(); err != nil {
			return nil, err
		}
		if r.s.Help {
			return r.s, nil
		}
		if err := r.file(); err != nil {
			return nil, err
		}
	}
	order := func(x Setting) int {
		return slices.IndexFunc(r.options, func(o Option) bool { return o.Name == x.Name })
	}
	slices.SortFunc(r.s.list, func(a, b Setting) int { return order(a) - order(b) })
	for _, x := range r.s.list {
		if x.Ignored && x.Value != nil {
			effect := strings.ReplaceAll(x.Effect, "`", "")
			r.warn("%s is %s", x.Origin, strings.ToLower(effect[:1])+effect[1:])
		}
	}
	return r.s, nil
}

type reader struct {
	in      Input
	options []Option
	s       *Settings
}

func (r *reader) warn(format string, args ...any) {
	r.s.Warnings = append(r.s.Warnings, fmt.Sprintf(format, args...))
}

// set keeps a setting unless one of a higher source is there.
func (r *reader) set(x Setting) {
	i := slices.IndexFunc(r.s.list, func(have Setting) bool { return have.Name == x.Name })
	switch {
	case i < 0:
		r.s.list = append(r.s.list, x)
	case r.s.list[i].Source <= x.Source:
		r.s.list[i] = x
	}
}

// environ reads the variables that begin with FLOWER_. Empty ones count as absent.
func (r *reader) environ() error {
	var all []string
	for _, o := range r.options {
		all = append(all, o.Env())
	}
	for _, variable := range r.in.Environ {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "FLOWER_") || text == "" {
			continue
		}
		o, ok := find(r.options, strings.ToLower(strings.TrimPrefix(name, "FLOWER_")))
		if !ok || o.Env() != name {
			if near := query.Nearest(name, all); near != "" && len(near) == len(name) && !kubernetes(name) {
				r.warn("$%s is no option of Flower: is it %s?", name, near)
			}
			continue
		}
		if o.Kind == Int && strings.HasPrefix(text, "tcp://") {
			r.warn("$%s=%s is ignored: Kubernetes sets it for a service named flower", name, text)
			continue
		}
		value, err := o.parse(text)
		if err != nil {
			return fmt.Errorf("$%s: %w", name, err)
		}
		r.set(Setting{o, value, Environment, "$" + name})
	}
	return nil
}

// kubernetes reports whether Kubernetes sets a variable for a service named flower.
func kubernetes(name string) bool {
	return strings.HasPrefix(name, "FLOWER_SERVICE_") || strings.HasPrefix(name, "FLOWER_PORT_")
}

// maxFile bounds a configuration file, bytes.
const maxFile = 1 << 20

// file reads the configuration file.
func (r *reader) file() error {
	name, origin := DefaultConfigFile, ""
	if x, ok := r.s.Get("conf"); ok {
		name, _ = x.Value.(string)
		origin = x.Origin + ": "
	}
	text, err := r.in.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && name == DefaultConfigFile {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s%w", origin, err)
	}
	if len(text) > maxFile {
		return fmt.Errorf("%s%s is longer than 1 MiB", origin, name)
	}
	env := map[string]string{}
	for _, variable := range r.in.Environ {
		key, value, _ := strings.Cut(variable, "=")
		env[key] = value
	}
	f := pyFile{text: string(text), env: env}
	assignments, err := f.read(func(name string) bool { o, ok := find(r.options, name); return ok && o.Kind == Function })
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	for _, a := range assignments {
		if err := r.assign(name, a); err != nil {
			return err
		}
	}
	return nil
}

// assign takes a line of the configuration file. Names that begin with _ and those that other lines use are no options.
func (r *reader) assign(file string, a assignment) error {
	origin := fmt.Sprintf("%s line %d: %s", file, a.line, a.name)
	o, ok := find(r.options, a.name)
	switch {
	case !ok || o.Variable || o.Name != a.name:
		if near := query.Nearest(a.name, names(r.options)); near != "" && !a.used {
			r.warn("%s is no option of Flower: is it %s?", origin, near)
		}
		return nil
	case o.Kind == Function:
		r.set(Setting{o, true, ConfigFile, origin})
		return nil
	case a.refused != "":
		return fmt.Errorf("%s: %s", origin, a.refused)
	}
	value, err := o.convert(a.value)
	if err != nil {
		return fmt.Errorf("%s %w", origin, err)
	}
	r.set(Setting{o, value, ConfigFile, origin})
	return nil
}
