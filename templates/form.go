package templates

import (
	"slices"
	"strings"

	"github.com/a-h/templ"

	"github.com/umbelhq/umbel/monitor/command"
)

// Form is the content of a page on which somebody asks for something to be done: first the fields that it needs, then
// what it would do, with the button that does it. It is made of plain forms.
type Form struct {
	Section     Section
	Title       string   // imperative: Grow pool
	Description string   // one sentence, may be empty
	Crumbs      []Link   // pages above this one
	Path        string   // where its forms lead, below the prefix: /act/worker
	Hidden      []Param  // what repeats the request, beside the fields
	Fields      []Input  // to be filled in; with a Preview they are hidden and repeated
	Targets     []string // whom it is for, shown above the fields
	// Long has the fields sent by POST to be checked, since they may not fit into an address.
	Long        bool
	Preview     *Preview // nil until the fields are filled in
	Change      string   // address at which the fields can be changed, empty if there are none
	Token       string   // repeated by a form that is sent twice
	Button      string   // Title if empty
	Danger      bool
	Links       []Link   // to what else can be done
	Tabs        []Choice // other kinds of the same form
	NothingToDo bool     // nothing would be done: there is only the way back
	Error       string   // why it is not done, as a sentence
}

// CheckParam is in a request whose fields are filled in and are to be checked only, TokenParam holds an Act.Token,
// and ConfirmParam what was typed to confirm.
const (
	CheckParam   = "check"
	TokenParam   = "token"
	ConfirmParam = "confirm"
	// ChangeParam is in a Long form that was sent to change its fields again.
	ChangeParam = "change"
)

// maxTargets bounds how many recipients are named.
const maxTargets = 20

// Input is a field of a form.
type Input struct {
	Name     string // of the parameter
	Field    string // what an error calls it: arguments.n
	Label    string
	Hint     string // may be empty
	Kind     InputKind
	Value    string   // true where a box is checked
	Options  []string // what may be chosen, or is proposed
	Required bool
	Error    string // why it is refused, as a sentence
}

// InputKind says how a field is filled in.
type InputKind uint8

// Kinds of fields.
const (
	InputText InputKind = iota
	InputNumber
	InputArea   // several lines, or JSON
	InputCheck  // yes or no
	InputChoice // one of Options
)

// Preview is what a request would do.
type Preview struct {
	command.Preview
	Details []Param // what it would be sent with

	ExpiresAt int64                    // when what it is about expires, µs, 0 for never
	Tasks     *Preflight               // on which tasks it would act, nil if it is about none
	Lost      *command.WaitingMessages // what a purge would remove, nil if it is none
	// Groups is what excluding fields would group, nil if it is not about that.
	Groups *command.DuplicateRulePreview
	Alert  *AlertBacktest // what a rule of alerts would have done, nil if it is not about one
}

// Page draws the whole page.
func (v Form) Page(l Layout) templ.Component { return formPage(l, v) }

// Refuse returns the form with why it was refused, at the field that is named so, or at the part of which it is.
func (v Form) Refuse(field, why string) Form {
	for i, f := range v.Fields {
		rest, ok := strings.CutPrefix(field, f.Field)
		if f.Field == "" || !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
			continue
		}
		v.Fields = append([]Input(nil), v.Fields...)
		v.Fields[i].Error = why
		v.Preview = nil
		return v
	}
	v.Error = why
	return v
}

func (v Form) button() string {
	if v.Button == "" {
		return v.Title
	}
	return v.Button
}

// values repeats the fields.
func (v Form) values() []Param {
	list := v.Hidden
	for _, f := range v.Fields {
		list = append(slices.Clip(list), Param{f.Name, f.Value})
	}
	return list
}

// ids of what belongs to a field.
func (f Input) id() string     { return "field-" + f.Name }
func (f Input) hintID() string { return f.id() + "-hint" }

// described names the element that says more of a field, empty if there is none.
func (f Input) described() string {
	if f.Hint == "" && f.Error == "" {
		return ""
	}
	return f.hintID()
}

// attributes of the element that is filled in.
func (f Input) attributes() templ.Attributes {
	a := templ.Attributes{}
	if f.Required && f.Kind != InputCheck {
		a["required"] = true
	}
	if d := f.described(); d != "" {
		a["aria-describedby"] = d
	}
	if f.Error != "" {
		a["aria-invalid"] = "true"
	}
	return a
}

// rows is how high an area is.
func (f Input) rows() int { return min(max(strings.Count(f.Value, "\n")+1, 3), 16) }

// heldWords say where a task is, and on which worker if there are several.
func heldWords(t command.HeldTask, one bool) string {
	var parts []string
	if !one {
		parts = append(parts, "on "+t.Worker)
	}
	if t.Queue != "" {
		parts = append(parts, "queue "+t.Queue)
	}
	if t.ByEvents {
		parts = append(parts, "by events")
	}
	return joined(parts)
}
