package templates

import (
	"strings"
	"time"
)

// timePiece is a part of a sentence: text, or the moment that is told there.
type timePiece struct {
	text string
	at   int64 // µs, 0 for plain text
}

// timePieces takes a sentence of the program apart where it tells times, "2026-11-21 12:00:00 UTC" with or without fractions,
// so that these are shown as the visitor chose.
func timePieces(sentence string) []timePiece {
	const zone = " UTC"
	var list []timePiece
	plain, rest := "", sentence
	for {
		before, after, found := strings.Cut(rest, zone)
		if !found {
			break
		}
		text, clock, at := cutTime(before)
		if at == 0 {
			plain += before + zone
		} else {
			list = append(list, timePiece{text: plain + text}, timePiece{clock, at})
			plain = ""
		}
		rest = after
	}
	return append(list, timePiece{text: plain + rest})
}

// cutTime cuts the time off the end of a text. It returns 0 if there is none.
func cutTime(text string) (before, clock string, at int64) {
	for _, layout := range []string{time.DateTime, "2006-01-02 15:04:05.000", "2006-01-02 15:04:05.000000"} {
		if cut := len(text) - len(layout); cut >= 0 {
			if t, err := time.Parse(layout, text[cut:]); err == nil {
				return text[:cut], text[cut:], t.UnixMicro()
			}
		}
	}
	return text, "", 0
}

// sentenceTime is a time as timePieces finds it.
func sentenceTime(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }
