package templates

import "github.com/a-h/templ"

// Problem is the content of a page that stands in for one that cannot be shown.
type Problem struct {
	Title     string // Not found
	Message   string // a sentence
	RequestID string // to find the cause in the log; empty if there is nothing to find
	Back      string // address of a page that helps on, empty for the overview
	BackText  string // All tasks
	Similar   []Link // pages that may have been meant
}

// Link is an address with the text to show for it.
type Link struct{ Text, Href string }

// Page draws the whole page.
func (v Problem) Page(l Layout) templ.Component { return problem(l, v) }
