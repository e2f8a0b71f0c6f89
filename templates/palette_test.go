package templates_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// visions are how colours are seen, as matrices of linear RGB: with all cones, and without those of one kind (Machado,
// Oliveira and Fernandes, 2009).
func visions() map[string][3][3]float64 {
	return map[string][3][3]float64{
		"usual":        {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
		"protanopia":   {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
		"deuteranopia": {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
		"tritanopia":   {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}},
	}
}

func times(m [3][3]float64, v [3]float64) (product [3]float64) {
	for i, row := range m {
		product[i] = row[0]*v[0] + row[1]*v[1] + row[2]*v[2]
	}
	return product
}

// seen is a colour as OKLab has it, in which distances are those that people see.
func seen(t *testing.T, hex string, vision [3][3]float64) [3]float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(hex[1:], 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	var linear [3]float64
	for i, shift := range []int{16, 8, 0} {
		linear[i] = linearPart(float64(rgb>>shift&0xff) / 255)
	}
	lms := times([3][3]float64{
		{0.4122214708, 0.5363325363, 0.0514459929}, {0.2119034982, 0.6806995451, 0.1073969566}, {0.0883024619, 0.2817188376, 0.6299787005},
	}, clamped(times(vision, linear)))
	for i := range lms {
		lms[i] = math.Cbrt(lms[i])
	}
	return times([3][3]float64{
		{0.2104542553, 0.7936177850, -0.0040720468}, {1.9779984951, -2.4285922050, 0.4505937099}, {0.0259040371, 0.7827717662, -0.8086757660},
	}, lms)
}

func clamped(v [3]float64) [3]float64 {
	for i := range v {
		v[i] = min(max(v[i], 0), 1)
	}
	return v
}

// tokensOf are the tokens of a file with their colours in the light and the dark theme.
func tokensOf(t *testing.T, file string) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	tokens := map[string][2]string{}
	for _, m := range regexp.MustCompile(`--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(string(text), -1) {
		if _, again := tokens[m[1]]; !again {
			tokens[m[1]] = [2]string{m[2], m[3]}
		}
	}
	return tokens
}

// TestColoursOfGroupsCanBeToldApart by everybody: from the ground, from each other, and from failures.
func TestColoursOfGroupsCanBeToldApart(t *testing.T) {
	t.Parallel()
	const (
		least = 3   // WCAG 2.2, 1.4.11
		apart = .06 // in OKLab; two neighbours of the usual eight hues are .1 apart
	)
	groups, usual := tokensOf(t, "../static/js/charts.js"), tokensOf(t, "../static/css/umbel.css")
	if len(groups) != 8 {
		t.Fatalf("%d colours of groups, want 8", len(groups))
	}
	for i, theme := range []string{"light", "dark"} {
		colors := map[string]string{"--failure": usual["failure"][i]}
		for n := range len(groups) {
			name := fmt.Sprintf("group-%d", n+1)
			colors["--"+name] = groups[name][i]
			for _, ground := range []string{"card", "background"} {
				if got := contrast(luminance(t, groups[name][i]), luminance(t, usual[ground][i])); got < least {
					t.Errorf("%s: --%s on --%s has contrast %.2f, want %d", theme, name, ground, got, least)
				}
			}
		}
		for vision, matrix := range visions() {
			for a, x := range colors {
				for b, y := range colors {
					p, q := seen(t, x, matrix), seen(t, y, matrix)
					if got := math.Hypot(math.Hypot(p[0]-q[0], p[1]-q[1]), p[2]-q[2]); a < b && got < apart {
						t.Errorf("%s, %s: %s and %s are %.3f apart, want %.2f", theme, vision, a, b, got, apart)
					}
				}
			}
		}
	}
}
