package state

import (
	"crypto/sha256"

	"github.com/umbelhq/umbel/internal/uuidtext"
)

// taskKey is a task id: the 16 bytes of a UUID, or a digest of any other string.
type taskKey [16]byte

// key returns the key of an id, and whether the id had to be digested.
func key(id string) (k taskKey, digested bool) {
	if b, ok := uuidtext.Parse(id); ok {
		return b, false
	}
	return digest(id), true
}

func digest(id string) taskKey {
	sum := sha256.Sum256([]byte(id))
	return taskKey(sum[:16])
}

// uuid writes a key that was not digested.
func (k taskKey) uuid() string {
	b := uuidtext.Format(k)
	return string(b[:])
}
