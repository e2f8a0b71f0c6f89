package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
)

// sealer encrypts what a cookie holds while a user is at a provider. Nothing is kept of users who do not come back.
type sealer struct{ aead cipher.AEAD }

// newSealer returns one with a key of this process, or, if processes share sessions, of what the providers trust all of them with.
func newSealer(o Options) *sealer {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	if o.Shared && len(o.Providers) > 0 {
		mac := hmac.New(sha256.New, []byte(o.Providers[0].ClientSecret))
		_, _ = mac.Write([]byte("umbel sign-in"))
		key = mac.Sum(nil)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // 32 bytes are a key
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return &sealer{aead}
}

func (s *sealer) seal(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, text, nil)), nil //nolint:gosec // the AEAD makes its own nonces
}

func (s *sealer) open(text string, v any) error {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return err
	}
	if len(sealed) < s.aead.Overhead() {
		return errors.New("too short")
	}
	plain, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil {
		return err
	}
	return json.Unmarshal(plain, v)
}
