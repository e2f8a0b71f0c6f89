package flower

import (
	"bytes"
	"context"
	"net/http"
)

// maxTagged is how long a list may be, in bytes, to be written whole, with an ETag. Longer ones are written as they are read.
const maxTagged = 4 << 20

// writeStream writes an object member by member.
func (a *API) writeStream(w http.ResponseWriter, r *http.Request, s stream) {
	ctx, cancel := context.WithTimeout(r.Context(), listTimeout)
	defer cancel()
	b := []byte("{")
	begun, first := false, true
	flush := func() error {
		if !begun {
			w.Header().Set("Content-Type", jsonType)
			w.WriteHeader(http.StatusOK)
			begun = true
		}
		_, err := w.Write(b)
		b = b[:0]
		return err
	}
	err := s(ctx, func(key string, value object) error {
		if !first {
			b = append(b, ", "...)
		}
		first = false
		from := len(b)
		b = appendString(b, key)
		b = append(b, ": "...)
		b = appendObject(b, value)
		b = append(b[:from], escaped(b[from:])...)
		if len(b) > maxTagged || begun && len(b) > 64<<10 {
			return flush()
		}
		return nil
	})
	switch {
	case err != nil && begun:
		panic(http.ErrAbortHandler) // so that the client does not take the part for the whole
	case err != nil:
		a.fail(w, r, err)
	case begun:
		b = append(b, '}')
		_ = flush() // the client has gone
	default:
		a.send(w, r, jsonType, append(b, '}'))
	}
}

// escaped is JSON without "</".
func escaped(b []byte) []byte { return bytes.ReplaceAll(b, []byte("</"), []byte(`<\/`)) }
