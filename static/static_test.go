package static_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/umbelhq/umbel/static"
)

func newAssets(t *testing.T) *static.Assets {
	t.Helper()
	a, err := static.New()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func get(t *testing.T, h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestFilesAreServedAsTheyAre(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	for name, mime := range map[string]string{
		"css/umbel.css":       "text/css; charset=utf-8",
		"js/umbel.js":         "text/javascript; charset=utf-8",
		"uplot/uPlot.min.css": "text/css; charset=utf-8",
		"icons/sprite.svg":    "image/svg+xml",
		"icons/favicon.svg":   "image/svg+xml",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			address := a.URL(filepath.Base(name))
			if !regexp.MustCompile(`^/assets/[0-9a-f]{12}/`).MatchString(address) {
				t.Errorf("URL = %q, want a hash in it", address)
			}
			plain := get(t, a, address)
			if got := plain.Header().Get("Content-Type"); got != mime {
				t.Errorf("Content-Type = %q, want %q", got, mime)
			}
			if !bytes.Equal(plain.Body.Bytes(), want) {
				t.Error("plain body differs from the file")
			}
			packed := get(t, a, address, "Accept-Encoding", "br, gzip;q=0.8")
			zr, err := gzip.NewReader(packed.Body)
			if err != nil {
				t.Fatalf("read gzip body: %v", err)
			}
			if got, err := io.ReadAll(zr); err != nil || !bytes.Equal(got, want) {
				t.Errorf("gzip body differs from the file: %v", err)
			}
			if got, other := plain.Header().Get("ETag"), packed.Header().Get("ETag"); got == other || got == "" {
				t.Errorf("ETags = %q and %q, want two", got, other)
			}
			again := get(t, a, address, "If-None-Match", plain.Header().Get("ETag"))
			if again.Code != http.StatusNotModified || again.Body.Len() != 0 {
				t.Errorf("with its ETag: status %d, %d bytes, want 304 and none", again.Code, again.Body.Len())
			}
		})
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	for accept, want := range map[string]string{
		"":                     "",
		"gzip":                 "gzip",
		"GZIP, deflate":        "gzip",
		"deflate, gzip;q=1.0":  "gzip",
		"gzip;q=0":             "",
		"gzip; q=0.000, br":    "",
		"x-gzip-not":           "",
		"br;q=1.0, gzip;q=0.1": "gzip",
	} {
		w := get(t, a, a.URL("umbel.js"), "Accept-Encoding", accept)
		if got := w.Header().Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q: Content-Encoding = %q, want %q", accept, got, want)
		}
		if got := w.Header().Get("Vary"); got != "Accept-Encoding" {
			t.Errorf("Accept-Encoding %q: Vary = %q", accept, got)
		}
	}
}

func TestUnknownFiles(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	for _, target := range []string{a.URL("nope.js"), "/assets/", "/assets/x", "/assets/x/../umbel.js", "/assets/x/js/umbel.js"} {
		if got := get(t, a, target).Code; got != http.StatusNotFound {
			t.Errorf("%s: status = %d, want 404", target, got)
		}
	}
}

// Files of others are as their makers published them (npm uplot 1.6.32). They are not under a directory named
// vendor, since modules are published without what lies below one.
func TestFilesOfOthersAreUnchanged(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"uplot/LICENSE":           "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
		"uplot/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uplot/uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
	} {
		body, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(body)); got != want {
			t.Errorf("SHA-256 of %s = %s, want %s", name, got, want)
		}
	}
}

// What a page with a chart loads more than others.
func TestChartsStaySmall(t *testing.T) {
	t.Parallel()
	a := newAssets(t)
	for names, most := range map[[2]string]int{{"uPlot.iife.min.js", "uPlot.min.css"}: 23_000, {"charts.js"}: 3_000, {"plot.js"}: 3_100} {
		sum := 0
		for _, name := range names {
			if name != "" {
				sum += get(t, a, a.URL(name), "Accept-Encoding", "gzip").Body.Len()
			}
		}
		if sum > most {
			t.Errorf("%v have %d bytes gzipped, want at most %d", names, sum, most)
		}
	}
}

func TestScriptStaysSmall(t *testing.T) {
	t.Parallel()
	const most = 10_000
	a := newAssets(t)
	if got := get(t, a, a.URL("umbel.js"), "Accept-Encoding", "gzip").Body.Len(); got > most {
		t.Errorf("umbel.js has %d bytes gzipped, want at most %d", got, most)
	}
}
