package templates_test

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTextHasEnoughContrast(t *testing.T) {
	t.Parallel()
	const least = 4.5 // WCAG 2.2, 1.4.3
	css, err := os.ReadFile("../static/css/umbel.css")
	if err != nil {
		t.Fatal(err)
	}
	themes := []string{"light", "dark"}
	tokens := map[string][]float64{} // luminance by theme
	for _, m := range regexp.MustCompile(`--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(string(css), -1) {
		if _, again := tokens[m[1]]; !again { // the first is the usual theme, later ones raise the contrast
			tokens[m[1]] = []float64{luminance(t, m[2]), luminance(t, m[3])}
		}
	}
	pairs := map[string][]string{
		"foreground":         {"background", "card", "muted", "accent", "sidebar"},
		"muted-foreground":   {"background", "card", "muted", "sidebar", "accent"},
		"primary":            {"background", "card", "accent", "sidebar"},
		"primary-foreground": {"primary"},
	}
	for _, state := range []string{"success", "failure", "retry", "started", "received", "revoked", "rejected", "pending", "custom"} {
		pairs[state] = []string{"background", "card", "muted", "accent"}
	}
	for text, grounds := range pairs {
		for _, ground := range grounds {
			for i, theme := range themes {
				if tokens[text] == nil || tokens[ground] == nil {
					t.Fatalf("no token --%s or --%s", text, ground)
				}
				if got := contrast(tokens[text][i], tokens[ground][i]); got < least {
					t.Errorf("%s: --%s on --%s has contrast %.2f, want %.1f", theme, text, ground, got, least)
				}
			}
		}
	}
}

// luminance is the relative luminance of WCAG 2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		return linearPart(float64(rgb>>shift&0xff) / 255)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

// linearPart takes the gamma of sRGB off.
func linearPart(c float64) float64 {
	if c <= 0.04045 {
		return c / 12.92
	}
	return math.Pow((c+0.055)/1.055, 2.4)
}

func contrast(a, b float64) float64 { return (max(a, b) + 0.05) / (min(a, b) + 0.05) }

func TestFilesStayWithinTheirBudget(t *testing.T) {
	t.Parallel()
	for file, most := range map[string]int{"css/umbel.css": 14_000, "icons/sprite.svg": 5_000} {
		raw, err := os.ReadFile("../static/" + file)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(raw); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if b.Len() > most {
			t.Errorf("%s takes %d bytes compressed, want at most %d", file, b.Len(), most)
		}
	}
}
