// Package static holds the style sheet, script and icons of the dashboard inside the binary and serves
// them under names that change with their content. It builds and fetches nothing.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

//go:embed css/*.css js/*.js icons/*.svg uplot/*.js uplot/*.css
var files embed.FS

// Assets are the files, hashed and compressed. They do not change, so any number of goroutines may
// use them.
type Assets struct {
	files map[string]asset // by base name
}

type asset struct {
	hash    string
	mime    string
	body    []byte
	gzipped []byte
}

// New returns the embedded files, which a process reads and compresses once.
func New() (*Assets, error) { return read() }

var read = sync.OnceValues(func() (*Assets, error) { //nolint:gochecknoglobals // of constants
	a := &Assets{files: map[string]asset{}}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		base := path.Base(name)
		if _, ok := a.files[base]; ok {
			return fmt.Errorf("two files are named %s", base)
		}
		a.files[base], err = newAsset(base, body)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read static files: %w", err)
	}
	return a, nil
})

func newAsset(name string, body []byte) (asset, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return asset{}, err
	}
	if _, err := w.Write(body); err != nil {
		return asset{}, err
	}
	if err := w.Close(); err != nil {
		return asset{}, err
	}
	sum := sha256.Sum256(body)
	return asset{
		hash:    hex.EncodeToString(sum[:6]),
		mime:    mediaType(name),
		body:    body,
		gzipped: b.Bytes(),
	}, nil
}

// mediaType does not ask the operating system, whose answers differ.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return "application/octet-stream"
	}
}

// URL returns the path of a file below the dashboard's prefix, "/assets/0123456789ab/umbel.css". A
// name that is not held gives a path that is not found.
func (a *Assets) URL(name string) string {
	hash := "none"
	if f, ok := a.files[name]; ok {
		hash = f.hash
	}
	return "/assets/" + hash + "/" + name
}

// ServeHTTP serves the paths that URL returns. A page of another version may ask for another hash: it
// gets the file as it is now, which no cache may keep.
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	hash, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/assets/"), "/")
	f, ok := a.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.mime)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache")
	if hash == f.hash {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body, tag := f.body, f.hash
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = f.gzipped, f.hash+"-gzip"
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip reports whether an Accept-Encoding header names gzip without refusing it.
func acceptsGzip(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			q := strings.TrimPrefix(strings.ReplaceAll(params, " ", ""), "q=")
			return strings.Trim(q, "0.") != "" || q == ""
		}
	}
	return false
}
