package locks

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// markDigits is the length of what tells redacted keys from each other: hexadecimal digits after a #.
const markDigits = 16

// newSecret returns what marks are made with. A digest alone would let short secrets be guessed.
func newSecret() []byte { return []byte(rand.Text()) }

// keyShown returns the key of a record, redacted.
func (t *tracker) keyShown(r *record) string {
	arguments := r.id.arguments
	if r.id.kind == Once && r.id.name == "" { // where they begin is unknown
		_, arguments, _ = strings.Cut(r.entry.Key, onceMark)
	}
	shown := t.options.Redactor.LockKey(r.id.name, r.entry.Key, arguments)
	if shown == r.entry.Key {
		return shown
	}
	mark := hmac.New(sha256.New, t.secret)
	mark.Write([]byte(r.entry.Key))
	return shown + "#" + hex.EncodeToString(mark.Sum(nil))[:markDigits]
}

// storedKey returns the key in Redis that keyShown stands for, or key.
func (t *tracker) storedKey(key string) string {
	i := strings.LastIndexByte(key, '#')
	if i < 0 || len(key)-i-1 != markDigits || t.records[key] != nil {
		return key
	}
	for _, all := range []map[string]*record{t.records, t.gone} {
		for stored, r := range all {
			if t.keyShown(r) == key {
				return stored
			}
		}
	}
	return key
}
