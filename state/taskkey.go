package state

import (
	"crypto/sha256"
	"encoding/hex"
)

// taskKey is a task id: the 16 bytes of a UUID, or a digest of any other string.
type taskKey [16]byte

// digits are the places of the pairs of hexadecimal digits of a UUID.
var digits = [16]uint8{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} //nolint:gochecknoglobals // a constant table

// nibbles are the values of hexadecimal digits in lower case, noNibble of other bytes: in upper case it is another string.
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

// key returns the key of an id, and whether the id had to be digested.
func key(id string) (k taskKey, digested bool) {
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		bad := byte(0)
		for i, at := range digits {
			high, low := nibbles[id[at]], nibbles[id[at+1]]
			k[i] = high<<4 | low
			bad |= high | low
		}
		if bad&noNibble == 0 {
			return k, false
		}
	}
	return digest(id), true
}

func digest(id string) taskKey {
	sum := sha256.Sum256([]byte(id))
	return taskKey(sum[:16])
}

// uuid writes a key that was not digested.
func (k taskKey) uuid() string {
	b := k.dashed()
	return string(b[:])
}

func (k taskKey) dashed() (b [36]byte) {
	hex.Encode(b[:8], k[:4])
	hex.Encode(b[9:13], k[4:6])
	hex.Encode(b[14:18], k[6:8])
	hex.Encode(b[19:23], k[8:10])
	hex.Encode(b[24:], k[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return b
}
