package templates

import (
	"strconv"

	"github.com/umbelhq/umbel/monitor/celery"
)

// Bounds of a tree; the rest is in the text beside it.
const (
	maxTreeValues = 500
	maxTreeLevels = 8
	maxTreeText   = 2_000 // characters of one value
	maxTreeFlat   = 60    // characters of a container that stands on one line
	maxTreeOpen   = 20    // values of a container that is open at first
	maxCopied     = 16_384
)

// reading is what is shown of the repr of arguments or a result.
type reading struct {
	Tree         []treeValue // empty if the text says it as well
	Left         int         // values that are not shown
	Why          string      // it is shown as it was sent, empty if it is not, or if nothing is lost by that
	Python, JSON string      // to be copied, empty if it cannot be written so
}

// treeValue is a value with its key.
type treeValue struct {
	Key   string
	Class string // of its kind, in CSS
	Text  string
	Items []treeValue
	Count string // of Items, in words
	Open  bool
}

// readRepr reads what events say of arguments or a result.
func readRepr(repr string) reading {
	v, ok := celery.ReadRepr(repr)
	if !ok {
		switch {
		case shortened(repr):
			return reading{Why: "Shown as sent: Celery has shortened it, so that it cannot be read as values."}
		case len(repr) > maxShown:
			return reading{Why: "Shown as sent: it is too long to be read as values."}
		case repr != "" && (repr[0] == '(' || repr[0] == '{' || repr[0] == '['):
			return reading{Why: "Shown as sent: it holds objects whose text cannot be told from the rest."}
		}
		return reading{}
	}
	var r reading
	if python, exact := v.Python(); exact && len(python) <= maxCopied {
		r.Python = python
	}
	if json, exact := v.JSON(); exact && len(json) <= maxCopied {
		r.JSON = string(json)
	}
	if v.Container() && len(v.Items) > 0 {
		b := treeBuilder{left: maxTreeValues}
		r.Tree, r.Left = b.items(&v, 0), b.dropped
	}
	return r
}

// treeBuilder makes the values of a tree until there are enough.
type treeBuilder struct{ left, dropped int }

func (b *treeBuilder) items(v *celery.Value, level int) []treeValue {
	list := make([]treeValue, 0, min(len(v.Items), b.left))
	for i := range v.Items {
		if b.left == 0 {
			b.dropped += len(v.Items) - i
			break
		}
		b.left--
		key := strconv.Itoa(i)
		switch {
		case v.Kind == celery.ValueDict && v.Keys[i].Kind == celery.ValueText:
			key = v.Keys[i].Text
		case v.Kind == celery.ValueDict:
			key = v.Keys[i].String()
		case v.Kind == celery.ValueSet:
			key = ""
		}
		list = append(list, b.value(excerpt(key, 100), &v.Items[i], level))
	}
	return list
}

func (b *treeBuilder) value(key string, v *celery.Value, level int) treeValue {
	t := treeValue{Key: key, Class: valueClass(v.Kind)}
	if !v.Container() || len(v.Items) == 0 || flat(v) || level+1 >= maxTreeLevels {
		text, cut := clip(v.String(), maxTreeText)
		if t.Text = text; cut {
			t.Text += "…"
		}
		return t
	}
	t.Items = b.items(v, level+1)
	t.Open = len(v.Items) <= maxTreeOpen
	one, many := "item", "items"
	if v.Kind == celery.ValueDict {
		one, many = "key", "keys"
	}
	t.Count = valueWord(v.Kind) + ", " + plural(len(v.Items), one, many)
	return t
}

// flat reports whether a container is short and holds no other.
func flat(v *celery.Value) bool {
	for i := range v.Items {
		if v.Items[i].Container() {
			return false
		}
	}
	return len(v.Items) <= 8 && len(v.String()) <= maxTreeFlat
}

func valueClass(k celery.ValueKind) string {
	switch k {
	case celery.ValueText:
		return "v-text"
	case celery.ValueInt, celery.ValueFloat, celery.ValueBool, celery.ValueNone:
		return "v-plain"
	case celery.ValueObject, celery.ValueCut:
		return "v-object"
	case celery.ValueList, celery.ValueTuple, celery.ValueSet, celery.ValueDict:
	}
	return "v-items"
}

func valueWord(k celery.ValueKind) string {
	switch k {
	case celery.ValueList:
		return "list"
	case celery.ValueTuple:
		return "tuple"
	case celery.ValueSet:
		return "set"
	case celery.ValueDict:
		return "dict"
	default:
		return ""
	}
}
