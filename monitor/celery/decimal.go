package celery

import "math"

// decimal is a number in its usual form, such as -12.5: digits, an integer of at most 18, of which some follow the point.
type decimal struct {
	digits   uint64
	fraction uint8 // how many follow the point
	negative bool
	known    bool // it is such a number
}

func isDigit(b byte) bool { return b-'0' <= 9 }

// decimal reads a number that is in its usual form. At any other the scanner stays where it is.
func (s *scanner) decimal() (d decimal) {
	const most = 18 // digits, which fit 63 bits
	text, at := s.text, s.at
	if at < len(text) && text[at] == '-' {
		d.negative = true
		at++
	}
	from := at
	for at < len(text) && isDigit(text[at]) {
		d.digits = d.digits*10 + uint64(text[at]-'0')
		at++
	}
	digits := at - from
	if digits == 0 {
		return decimal{}
	}
	if at < len(text) && text[at] == '.' {
		at++
		from = at
		for at < len(text) && isDigit(text[at]) {
			d.digits = d.digits*10 + uint64(text[at]-'0')
			at++
		}
		if at == from {
			return decimal{}
		}
		digits += at - from
		d.fraction = uint8(min(at-from, most))
	}
	if digits > most {
		return decimal{}
	}
	if at < len(text) {
		switch text[at] {
		case '.', 'e', 'E', '+', '-', 'N', 'I':
			return decimal{}
		}
	}
	s.at, d.known = at, true
	return d
}

// integer returns an integer.
func (d decimal) integer() (int64, bool) {
	if d.negative {
		return -int64(d.digits), d.known && d.fraction == 0
	}
	return int64(d.digits), d.known && d.fraction == 0
}

// powers are those of ten, which floats hold exactly.
var powers = [...]float64{ //nolint:gochecknoglobals // a constant table
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
}

// float returns the nearest float, if that takes one division: of two numbers that floats hold exactly.
func (d decimal) float() (float64, bool) {
	f := float64(d.digits) / powers[d.fraction]
	if d.negative {
		f = -f
	}
	return f, d.known && d.digits < 1<<53
}

// micros returns seconds in µs, rounded as those of the nearest float, if that is easy.
//
// With up to six digits after the point there is nothing to round: below 2^32 s, the nearest float, times a million, is less than
// half a µs off. Python writes times of today with seven. Then the nearest float is a sum of two: the fraction is at least 10^-8
// · 2^-24 away from where its rounding could change that of the sum, which is more than what it may be off itself.
func (d decimal) micros() (int64, bool) {
	switch {
	case !d.known || d.negative:
	case d.fraction <= 6:
		scale := uint64(powers[6-d.fraction])
		return int64(d.digits * scale), d.digits <= 1<<32*1e6/scale
	case d.fraction <= 8:
		scale := uint64(powers[d.fraction])
		seconds := d.digits / scale
		f := float64(seconds) + float64(d.digits%scale)/powers[d.fraction]
		return int64(math.Round(f * 1e6)), seconds >= 1<<29 && seconds < 1<<32
	}
	return 0, false
}
