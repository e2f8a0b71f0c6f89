package control

import "fmt"

// Method is a remote control command that Umbel offers. Those that harm workers, or only workers may use, are none:
// election, hello, objgraph, memdump.
type Method struct {
	Name    string
	Title   string // imperative, for buttons: Grow pool
	Doc     string // one sentence
	Inspect bool   // only reads
	Silent  bool   // workers do not answer it (shutdown)
	Danger  bool   // wants confirmation
	Params  []Param
}

// Param is an argument of a Method.
type Param struct {
	Name     string
	Type     ParamType
	Required bool
	Doc      string
}

// ParamType is the type of an argument.
type ParamType uint8

// Types of arguments.
const (
	Text     ParamType = iota // string, not empty
	Texts                     // array of strings, not empty
	Whole                     // integer from 0
	Seconds                   // number > 0, or null for none
	Rate                      // "10/m", "5/s", "2/h", a number, or 0 for no limit
	Signal                    // SIGTERM, SIGKILL, …
	Flag                      // boolean
	Anything                  // any JSON
)

// Methods returns all methods, inspecting ones first.
func Methods() []Method { return nil }

// Lookup finds a method by name.
func Lookup(name string) (Method, bool) { return Method{}, false }

// ArgumentError says which argument is wrong, and how.
type ArgumentError struct {
	Method   string
	Argument string // its name
	Message  string // what it must be
}

// Error returns one sentence.
func (e *ArgumentError) Error() string {
	return fmt.Sprintf("argument %s of %s %s", e.Argument, e.Method, e.Message)
}

// Check returns args as the worker expects them, in types that JSON keeps, or an *ArgumentError: one is missing,
// mistyped, or not known.
func (m Method) Check(args map[string]any) (map[string]any, error) { return args, nil }
