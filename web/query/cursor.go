package query

import (
	"encoding/base64"
	"encoding/binary"

	"github.com/umbelhq/umbel/clock"
	"github.com/umbelhq/umbel/state"
)

// A cursor is base64url, unpadded, of: format version (1 byte), direction (1 byte), clock and
// micros (signed varints), length of the origin (unsigned varint), origin, id.
const (
	cursorVersion = 1
	cursorOlder   = 0
	cursorNewer   = 1
)

// Encode returns the cursor of the page that continues after pos, towards newer or older rows.
func Encode(pos state.Position, newer bool) string {
	direction := byte(cursorOlder)
	if newer {
		direction = cursorNewer
	}
	b := []byte{cursorVersion, direction}
	b = binary.AppendVarint(b, pos.Stamp.Clock)
	b = binary.AppendVarint(b, pos.Stamp.Micros)
	b = binary.AppendUvarint(b, uint64(len(pos.Stamp.Origin)))
	b = append(b, pos.Stamp.Origin...)
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
	micros, origin := int64(0), uint64(0)
	count, n := binary.Varint(b)
	if n > 0 {
		b = b[n:]
		micros, n = binary.Varint(b)
	}
	if n > 0 {
		b = b[n:]
		origin, n = binary.Uvarint(b)
	}
	if n <= 0 {
		return pos, false, false
	}
	if b = b[n:]; origin > uint64(len(b)) {
		return pos, false, false
	}
	pos = state.Position{
		Stamp: clock.Stamp{Clock: count, Micros: micros, Origin: string(b[:origin])},
		ID:    string(b[origin:]),
	}
	return pos, newer, Encode(pos, newer) == s
}
