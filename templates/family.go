package templates

// Family is a task amid the one that sent it, those sent next to it, and those that it sent.
type Family struct {
	Waterfall     Waterfall
	Siblings      int // that are known
	SiblingsDrawn int
	Children      int
	ChildrenDrawn int
}

// alone reports whether no other task is drawn.
func (v Family) alone() bool { return v.Waterfall.w == nil || len(v.Waterfall.w.Tasks) < 2 }

// cut says what is not drawn, empty if nothing is left out.
func (v Family) cut() string {
	text := ""
	if v.SiblingsDrawn < v.Siblings {
		text = "Of " + plural(v.Siblings, "other task", "other tasks") + " of the same parent, " + number(v.SiblingsDrawn) + " are drawn. "
	}
	if v.ChildrenDrawn < v.Children {
		text += "Of " + plural(v.Children, "task", "tasks") + " that it sent, " + number(v.ChildrenDrawn) + " are drawn."
	}
	return text
}
