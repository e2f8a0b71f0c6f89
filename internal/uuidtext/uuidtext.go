// Package uuidtext reads and writes UUIDs as Python does: in lower case, with dashes. Any other spelling is another id of a task.
package uuidtext

import "encoding/hex"

// places are where the pairs of hexadecimal digits are.
var places = [16]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} //nolint:gochecknoglobals // a constant table

// nibbles are the values of hexadecimal digits in lower case, noNibble of other bytes.
var nibbles = func() (values [256]byte) { //nolint:gochecknoglobals // a constant table
	for i := range values {
		values[i] = noNibble
	}
	for i, b := range []byte("0123456789abcdef") {
		values[b] = byte(i)
	}
	return values
}()

const noNibble = 0x80

// Parse returns the bytes of a UUID, false if the text is none.
func Parse(text string) (b [16]byte, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return b, false
	}
	bad := byte(0)
	for i, at := range places {
		high, low := nibbles[text[at]], nibbles[text[at+1]]
		b[i] = high<<4 | low
		bad |= high | low
	}
	return b, bad&noNibble == 0
}

// Format returns the text of a UUID.
func Format(b [16]byte) (text [36]byte) {
	hex.Encode(text[:8], b[:4])
	hex.Encode(text[9:13], b[4:6])
	hex.Encode(text[14:18], b[6:8])
	hex.Encode(text[19:23], b[8:10])
	hex.Encode(text[24:], b[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return text
}
