package query

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

// A cursor is base64url, unpadded, of: format version (1 byte), direction (1 byte), the value that the list
// is sorted by, clock and micros (signed varints), the word that it is sorted by, origin, id. The texts but the last
// follow their lengths (unsigned varints).
const (
	cursorVersion = 3
	cursorOlder   = 0
	cursorNewer   = 1
)

// Encode returns the cursor of the page that continues after pos, towards the top of the list if newer, else
// towards its end.
func Encode(pos state.Position, newer bool) string {
	direction := byte(cursorOlder)
	if newer {
		direction = cursorNewer
	}
	b := []byte{cursorVersion, direction}
	b = binary.AppendVarint(b, pos.Value)
	b = binary.AppendVarint(b, pos.Stamp.Clock)
	b = binary.AppendVarint(b, pos.Stamp.Micros)
	for _, text := range [...]string{pos.Word, pos.Stamp.Origin} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = append(b, pos.ID...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// decode reverses Encode. It accepts nothing that Encode would not have returned.
func decode(s string) (pos state.Position, newer, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) < 2 || b[0] != cursorVersion {
		return pos, false, false
	}
	newer, b = b[1] == cursorNewer, b[2:]
	var numbers [3]int64 // value, clock, micros
	for i := range numbers {
		n := 0
		if numbers[i], n = binary.Varint(b); n <= 0 {
			return pos, false, false
		}
		b = b[n:]
	}
	var texts [2]string // word, origin
	for i := range texts {
		length, n := binary.Uvarint(b)
		if n <= 0 || length > uint64(len(b)-n) {
			return pos, false, false
		}
		b = b[n:]
		texts[i], b = string(b[:length]), b[length:]
	}
	pos = state.Position{
		Stamp: clock.Stamp{Clock: numbers[1], Micros: numbers[2], Origin: texts[1]},
		Value: numbers[0],
		Word:  texts[0],
		ID:    string(b),
	}
	return pos, newer, Encode(pos, newer) == s
}
