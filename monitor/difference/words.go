package difference

import (
	"slices"
	"strings"
	"unicode"
)

// maxWords is how many words of each text, between what is equal before and after them, are matched with each other. Texts
// with more are taken to differ from the first difference to the last.
const maxWords = 800

// Words compares two texts word by word. It returns them in parts, and shortens what is equal or long.
func Words(first, second string) (a, b []Part) {
	x, y := split(first), split(second)
	begin := 0
	for begin < min(len(x), len(y)) && x[begin] == y[begin] {
		begin++
	}
	end := 0
	for end < min(len(x), len(y))-begin && x[len(x)-1-end] == y[len(y)-1-end] {
		end++
	}
	inX, inY := x[begin:len(x)-end], y[begin:len(y)-end]
	keptX, keptY := make([]bool, len(inX)), make([]bool, len(inY))
	if len(inX) > maxWords || len(inY) > maxWords {
		inX, inY = []string{strings.Join(inX, "")}, []string{strings.Join(inY, "")}
	} else {
		match(inX, inY, keptX, keptY)
	}
	parts := func(whole, within []string, kept []bool) []Part {
		var p parts
		p.add(strings.Join(whole[:begin], ""), false)
		for i, word := range within {
			p.add(word, !kept[i])
		}
		p.add(strings.Join(whole[len(whole)-end:], ""), false)
		return p.shortened()
	}
	return parts(x, inX, keptX), parts(y, inY, keptY)
}

// split splits a text into words, runs of spaces, and single signs.
func split(s string) []string {
	var words []string
	class := func(c rune) int {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '_':
			return 1
		case unicode.IsSpace(c):
			return 2
		}
		return 0
	}
	start, last := 0, -1
	for i, c := range s {
		now := class(c)
		if i > 0 && (now != last || now == 0) {
			words = append(words, s[start:i])
			start = i
		}
		last = now
	}
	if start < len(s) {
		words = append(words, s[start:])
	}
	return words
}

// match marks the words of a longest common subsequence.
func match(x, y []string, keptX, keptY []bool) {
	length := make([][]uint16, len(x)+1) // of that of what follows both places
	for i := range length {
		length[i] = make([]uint16, len(y)+1)
	}
	for i, a := range slices.Backward(x) {
		for j, b := range slices.Backward(y) {
			if a == b {
				length[i][j] = length[i+1][j+1] + 1
			} else {
				length[i][j] = max(length[i+1][j], length[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(x) && j < len(y); {
		switch {
		case x[i] == y[j]:
			keptX[i], keptY[j] = true, true
			i, j = i+1, j+1
		case length[i+1][j] >= length[i][j+1]:
			i++
		default:
			j++
		}
	}
}

// parts joins neighbours of one kind.
type parts []Part

func (p *parts) add(text string, differs bool) {
	if n := len(*p); text != "" && n > 0 && (*p)[n-1].Differs == differs {
		(*p)[n-1].Text += text
	} else if text != "" {
		*p = append(*p, Part{text, differs})
	}
}

// shortened leaves out of long equal parts what is far from a difference, and the end of what is still too long.
func (p *parts) shortened() []Part {
	left := 4 * maxText
	list := make([]Part, 0, len(*p))
	for i, part := range *p {
		runes := []rune(part.Text)
		if !part.Differs && len(runes) > 3*context {
			before, after := runes[:context], runes[len(runes)-context:]
			switch {
			case len(*p) == 1:
				part.Text = shorten(part.Text)
			case i == 0:
				part.Text = "…" + string(after)
			case i == len(*p)-1:
				part.Text = string(before) + "…"
			default:
				part.Text = string(before) + " … " + string(after)
			}
		}
		if runes = []rune(part.Text); len(runes) > left {
			part.Text = string(runes[:left]) + "…"
			return append(list, part)
		}
		left -= len(runes)
		list = append(list, part)
	}
	return list
}
