package live

import (
	"bytes"
	"compress/flate"
	"slices"
	"sync"
)

// window is how many bytes back deflate refers to.
const window = 32 << 10

// level is that beyond which messages hardly become smaller.
const level = 8

// What the first byte of a compressed message says about the rest.
const (
	follows = 0 // a frame that follows the last one, and refers to the frames before it
	starts  = 1 // the frames that later ones refer to, and then a frame that leads from a page or from anywhere
)

// compressor compresses messages by deflate. A writer has 1 MB, so they are shared.
type compressor struct {
	writers sync.Pool // of *flate.Writer
}

// compress returns a message of this kind. Its reader has read before, of which the last bytes in the window count.
func (c *compressor) compress(kind byte, before, text []byte) []byte {
	var b bytes.Buffer // to which nothing fails to be written
	w, ok := c.writers.Get().(*flate.Writer)
	if !ok {
		w, _ = flate.NewWriter(&b, level) // a level that there is
	}
	defer c.writers.Put(w)
	w.Reset(&b)
	_, _ = w.Write(before)
	_ = w.Flush()
	b.Reset()
	b.WriteByte(kind)
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes()
}

// last returns what of a and b, one after the other, is in the window. It is a copy.
func last(a, b []byte) []byte {
	all := slices.Concat(a, b)
	return bytes.Clone(all[max(0, len(all)-window):])
}
