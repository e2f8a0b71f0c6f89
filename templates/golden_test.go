package templates_test

import (
	"bytes"
	"flag"
	"html"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/a-h/templ"
	"github.com/google/go-cmp/cmp"

	"github.com/umbelhq/umbel/templates"
)

var update = flag.Bool("update", false, "write golden files")

// urls is mounted below a prefix, so that a link that forgets it shows.
func urls() templates.URLs {
	return templates.URLs{
		Prefix: "/ops", HasCommands: true, CanSend: true, IsAdmin: true, HasLocks: true, Tracker: "tracker.example",
		Asset: func(name string) string { return "/ops/assets/0/" + name },
	}
}

func render(t *testing.T, c templ.Component) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatalf("render: %v", err)
	}
	return b.String()
}

func page(t *testing.T, s scene) string {
	t.Helper()
	c := s.layout
	c.URLs = urls()
	c.Above, c.Cluster = s.layout.Above, s.layout.Cluster
	return render(t, s.view.Page(c))
}

// recorded returns the parts of a page.
func recorded(t *testing.T, v templates.View) templates.Parts {
	t.Helper()
	parts, err := templates.Record(t.Context(), v.Page(templates.Layout{URLs: urls()}), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// region returns the HTML of a region of a page.
func region(t *testing.T, v templates.View, id string) string {
	t.Helper()
	for _, part := range recorded(t, v).Regions {
		if part.ID == id {
			return part.HTML
		}
	}
	t.Fatalf("the page has no region %q", id)
	return ""
}

// lines puts each tag on a line of its own, so that differences can be read.
func lines(html string) string { return strings.ReplaceAll(html, "><", ">\n<") + "\n" }

func TestPagesLookAsRecorded(t *testing.T) {
	t.Parallel()
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lines(page(t, s))
			golden := filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("page differs from %s (-want +got), run with -update if that is meant:\n%s", golden, diff)
			}
		})
	}
}

func TestRecordedPartsArePartsOfThePage(t *testing.T) {
	t.Parallel()
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := page(t, s)
			l := s.layout
			l.URLs = urls()
			parts, err := templates.Record(t.Context(), s.view.Page(l), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			all := parts.Regions
			for _, l := range parts.Lists {
				if !strings.Contains(whole, `<tbody id="`+l.ID+`">`) {
					t.Errorf("page has no list %q", l.ID)
				}
				all = append(all, l.Rows...)
			}
			if len(all) == 0 && !l.Bare { // a bare page shows nothing that changes
				t.Error("nothing was recorded")
			}
			seen := map[string]bool{}
			for _, part := range all {
				if !strings.Contains(whole, part.HTML) {
					t.Errorf("page does not hold part %q as it is:\n%s", part.ID, part.HTML)
				}
				if root := elements(part.HTML)[0]; root.attributes["id"] != part.ID {
					t.Errorf("part %q starts with %s", part.ID, root.tag)
				}
				if seen[part.ID] {
					t.Errorf("two parts have the id %q", part.ID)
				}
				seen[part.ID] = true
			}
		})
	}
}

// element is a start tag with its attributes, unescaped.
type element struct {
	tag        string
	attributes map[string]string
}

// elements are the start tags of a document. Text and attributes are escaped, so that angle brackets
// are always tags.
func elements(page string) []element {
	var list []element
	attribute := regexp.MustCompile(`\s([a-z-]+)="([^"]*)"`)
	for _, tag := range regexp.MustCompile(`<[a-zA-Z][^>]*>`).FindAllString(page, -1) {
		e := element{tag: tag, attributes: map[string]string{}}
		for _, m := range attribute.FindAllStringSubmatch(tag, -1) {
			e.attributes[m[1]] = html.UnescapeString(m[2])
		}
		list = append(list, e)
	}
	return list
}

func TestPagesKeepTheContentSecurityPolicy(t *testing.T) {
	t.Parallel()
	inline := regexp.MustCompile(`(?i)\s(style|on[a-z]+|srcdoc|formaction)\s*=|^<(style|base|iframe|object|embed)\b`)
	quoted := regexp.MustCompile(`"[^"]*"`)
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, e := range elements(page(t, s)) {
				// Quoted values may say anything: only names matter here, and schemes below.
				if inline.MatchString(quoted.ReplaceAllString(e.tag, `""`)) {
					t.Errorf("inline style or script: %s", e.tag)
				}
				if strings.HasPrefix(e.tag, "<script") && e.attributes["src"] == "" {
					t.Errorf("inline script: %s", e.tag)
				}
				for _, name := range []string{"href", "src", "action"} {
					url, ok := e.attributes[name]
					out := name == "href" && e.attributes["rel"] == "noreferrer" && strings.HasPrefix(url, "https://") // documentation, marks
					if ok && !out && !strings.HasPrefix(url, "/ops/") && !strings.HasPrefix(url, "#") {
						t.Errorf("%s outside the prefix: %s", name, e.tag)
					}
				}
			}
		})
	}
}

func TestIDsAreUnique(t *testing.T) {
	t.Parallel()
	for name, s := range scenes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := map[string]bool{}
			for _, e := range elements(page(t, s)) {
				if id, ok := e.attributes["id"]; ok {
					if seen[id] {
						t.Errorf("two elements have the id %q", id)
					}
					seen[id] = true
				}
			}
		})
	}
}

func TestEveryIconIsInTheSprite(t *testing.T) {
	t.Parallel()
	sprite, err := os.ReadFile("../static/icons/sprite.svg")
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, m := range regexp.MustCompile(`<symbol id="([^"]+)"`).FindAllStringSubmatch(string(sprite), -1) {
		held[m[1]] = true
	}
	used := map[string]bool{}
	for _, s := range scenes() {
		for _, e := range elements(page(t, s)) {
			if _, icon, ok := strings.Cut(e.attributes["href"], "/sprite.svg#"); ok {
				used[icon] = true
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(held)), slices.Sorted(maps.Keys(used))); diff != "" {
		t.Errorf("icons in the sprite (-) and on the pages (+):\n%s", diff)
	}
}
