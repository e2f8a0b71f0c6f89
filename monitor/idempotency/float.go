package idempotency

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// float reads a float that has a dot or an exponent. strconv takes 50 ns for most, but a microsecond for those half way
// between two floats, and 30 near the ends of the range and for some with more than 19 digits. Those in the middle are
// integers times a power of two, so they are computed; of the others there is a bound.
func (p *parser) float(written string) (Value, *Error) {
	n := readDecimal(written)
	if n.digits <= 19 {
		if f, ok := n.exact(); ok {
			return Value{kind: isFloat, number: f}, nil
		}
	}
	if magnitude := n.digits + n.exponent; n.digits > 19 || magnitude > 300 || magnitude < -290 {
		if p.slow++; p.slow > MaxFar {
			return Value{}, &Error{Message: fmt.Sprintf("has more than %d floats with over 19 digits, beyond 1e300 or nearer to 0 than 1e-290", MaxFar)}
		}
	}
	if n.digits > maxDigits {
		written = n.shorten(written)
	}
	f, _ := strconv.ParseFloat(written, 64) // out of range it is an infinity, as it is for Python
	return Value{kind: isFloat, number: f}, nil
}

// decimal is ± mantissa × 10^exponent. With more than 19 digits the mantissa has overflowed.
type decimal struct {
	negative         bool
	mantissa         uint64
	digits, exponent int
}

// readDecimal reads a float, whose form was checked.
func readDecimal(s string) (d decimal) {
	s, d.negative = strings.CutPrefix(s, "-")
	dot := false
	for i, c := range []byte(s) {
		switch {
		case c == '.':
			dot = true
			continue
		case c == 'e' || c == 'E':
			exponent, _ := strconv.Atoi(s[i+1:]) // out of range it is the end of the range
			d.exponent += min(max(exponent, -math.MaxInt32), math.MaxInt32)
			return d
		case dot:
			d.exponent--
		}
		if d.mantissa > 0 || c != '0' {
			d.mantissa = d.mantissa*10 + uint64(c-'0')
			d.digits++
		}
	}
	return d
}

// maxDigits is more than the digits of any number half way between two floats, of which there are up to 768.
const maxDigits = 800

// shorten writes d, which was read from s and has more than maxDigits, so that the float next to it stays the same.
// strconv reads an integer of more than 800 digits with an exponent as too small, where it does not read it the fast way.
func (d decimal) shorten(s string) string {
	sign := ""
	if d.negative {
		sign, s = "-", s[1:]
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		s = s[:i]
	}
	digits := strings.TrimLeft(strings.Replace(s, ".", "", 1), "0")
	kept, rest := digits[:maxDigits], digits[maxDigits:]
	exponent := d.exponent + len(rest)
	if strings.Trim(rest, "0") != "" {
		kept += "1" // what is left out makes it more
		exponent--
	}
	return sign + kept + "e" + strconv.Itoa(exponent)
}

// exact returns the float next to d, if d is an integer of 64 bits times a power of two.
func (d decimal) exact() (float64, bool) {
	if d.exponent < -27 || d.exponent > 27 {
		return 0, false // 5^28 has more than 64 bits
	}
	power := uint64(1)
	for range max(d.exponent, -d.exponent) {
		power *= 5
	}
	twos := 0
	if d.mantissa != 0 {
		twos = bits.TrailingZeros64(d.mantissa)
	}
	m := d.mantissa >> twos
	switch high, low := bits.Mul64(m, power); {
	case d.exponent >= 0 && high == 0:
		m = low
	case d.exponent < 0 && m%power == 0:
		m /= power
	default:
		return 0, false
	}
	f := math.Ldexp(float64(m), twos+d.exponent)
	if d.negative {
		f = -f
	}
	return f, true
}

// roundFloat is Python's round(f, decimals): to the nearest decimal by the exact value of the float, and where two are
// equally near, to the even one.
func roundFloat(f float64, decimals int) float64 {
	power := math.Pow10(decimals)
	scaled := f * power
	if math.IsNaN(f) || math.Abs(f) >= 1<<52 {
		return f
	}
	if math.Abs(scaled) >= 1<<52 {
		f, _ = strconv.ParseFloat(strconv.FormatFloat(f, 'f', decimals, 64), 64)
		return f
	}
	n := math.RoundToEven(scaled)
	missing := math.FMA(f, power, -scaled) // scaled + missing is the exact product
	switch half := scaled - n; {
	case half == 0.5 && missing > 0:
		n++
	case half == -0.5 && missing < 0:
		n--
	}
	return math.Copysign(n/power, f)
}
