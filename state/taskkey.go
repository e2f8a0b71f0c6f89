package state

import (
	"crypto/sha256"
	"encoding/hex"
)

// taskKey is a task id: the 16 bytes of a UUID, or a digest of any other string.
type taskKey [16]byte

// key returns the key of an id, and whether the id had to be digested.
func key(id string) (k taskKey, digested bool) {
	if len(id) == 36 && id[8] == '-' && id[13] == '-' && id[18] == '-' && id[23] == '-' {
		var plain [32]byte
		n := copy(plain[:], id[:8])
		n += copy(plain[n:], id[9:13])
		n += copy(plain[n:], id[14:18])
		n += copy(plain[n:], id[19:23])
		copy(plain[n:], id[24:])
		for _, b := range plain {
			if b >= 'A' && b <= 'F' { // a different string than in lower case
				return digest(id), true
			}
		}
		if _, err := hex.Decode(k[:], plain[:]); err == nil {
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
	var b [36]byte
	hex.Encode(b[:8], k[:4])
	hex.Encode(b[9:13], k[4:6])
	hex.Encode(b[14:18], k[6:8])
	hex.Encode(b[19:23], k[8:10])
	hex.Encode(b[24:], k[10:])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}
