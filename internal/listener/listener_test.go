package listener_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/listener"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{cert, key}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// issue returns a certificate for 127.0.0.1 and its key, as PEM.
func (a *authority) issue(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	b, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: b})
}

// replace writes a file as those who replace certificates do: beside it, then renamed. Each has a later time.
func replace(t *testing.T, name string, text []byte) {
	t.Helper()
	at := time.Now()
	if info, err := os.Stat(name); err == nil {
		at = info.ModTime().Add(time.Second)
	}
	if err := os.WriteFile(name+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name+".new", at, at); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
}

// serve answers requests on l with the protocol that they came by, until the test ends.
func serve(t *testing.T, l net.Listener) {
	t.Helper()
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	server := &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: quiet, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Proto))
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
}

// subject returns the name in the certificate that a server presents, and the protocol of a response.
func subject(t *testing.T, url string, config *tls.Config) (name, proto string, err error) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = res.Body.Close() }()
	return res.TLS.PeerCertificates[0].Subject.CommonName, res.Proto, nil
}

func TestCertificateIsReadAgainWhenItChanges(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t, "authority"), t.TempDir()
	files := listener.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	put := func(name string) {
		cert, key := a.issue(t, name)
		replace(t, files.Key, key)
		replace(t, files.Cert, cert)
	}
	put("first")
	var log strings.Builder
	c, err := listener.NewCertificate(files, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	l, err := listener.Listen(t.Context(), "127.0.0.1:0", c, nil)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	url := l.URL("/umbel/")
	if !strings.HasPrefix(url, "https://127.0.0.1:") || !strings.HasSuffix(url, "/umbel/") {
		t.Errorf("URL %s", url)
	}
	check := func(step, want string) {
		t.Helper()
		got, proto, err := subject(t, url, &tls.Config{RootCAs: a.pool(), MinVersion: tls.VersionTLS12})
		if got != want || proto != "HTTP/2.0" || err != nil {
			t.Errorf("%s: certificate %q by %s, %v, want %q by HTTP/2.0", step, got, proto, err, want)
		}
	}
	check("at first", "first")
	put("second")
	check("replaced", "second")
	replace(t, files.Cert, []byte("nonsense"))
	check("nonsense", "second")
	check("nonsense again", "second")
	cert, key := a.issue(t, "third")
	replace(t, files.Cert, cert)
	check("without its key", "second")
	replace(t, files.Key, key)
	check("with its key", "third")
	if err := os.Remove(files.Cert); err != nil {
		t.Fatal(err)
	}
	check("removed", "third")
	if n := strings.Count(log.String(), "the one before stays"); n != 3 {
		t.Errorf("%d lines about files that cannot be used, want 3:\n%s", n, log.String())
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t, "authority"), t.TempDir()
	l := listenTLS(t, a, listener.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")})
	_, _, err := subject(t, l.URL("/"), &tls.Config{RootCAs: a.pool(), MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("error %v, want one about the protocol version", err)
	}
}

// listenTLS listens on loopback with a certificate of a.
func listenTLS(t *testing.T, a *authority, files listener.Files) *listener.Listener {
	t.Helper()
	cert, key := a.issue(t, "server")
	replace(t, files.Cert, cert)
	replace(t, files.Key, key)
	c, err := listener.NewCertificate(files, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := listener.Listen(t.Context(), "127.0.0.1:0", c, nil)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l)
	return l
}

func TestClientsNeedACertificate(t *testing.T) {
	t.Parallel()
	a, clients, dir := newAuthority(t, "authority"), newAuthority(t, "clients"), t.TempDir()
	files := listener.Files{Cert: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem"), ClientCA: filepath.Join(dir, "ca.pem")}
	replace(t, files.ClientCA, clients.pem())
	l := listenTLS(t, a, files)
	config := func(signer *authority) *tls.Config {
		c := &tls.Config{RootCAs: a.pool(), MinVersion: tls.VersionTLS12}
		if signer != nil {
			pair, err := tls.X509KeyPair(signer.issue(t, "client"))
			if err != nil {
				t.Fatal(err)
			}
			c.Certificates = []tls.Certificate{pair}
		}
		return c
	}
	for name, test := range map[string]struct {
		signer *authority
		ok     bool
	}{"none": {nil, false}, "another's": {a, false}, "signed": {clients, true}} {
		if _, _, err := subject(t, l.URL("/"), config(test.signer)); (err == nil) != test.ok {
			t.Errorf("certificate %s: error %v, want accepted %v", name, err, test.ok)
		}
	}
	replace(t, files.ClientCA, a.pem()) // another authority from now on
	if _, _, err := subject(t, l.URL("/"), config(clients)); err == nil {
		t.Error("a certificate of the authority before is still accepted")
	}
	if _, _, err := subject(t, l.URL("/"), config(a)); err != nil {
		t.Errorf("a certificate of the new authority: %v", err)
	}
}

func TestFilesThatAreNoCertificate(t *testing.T) {
	t.Parallel()
	a, dir := newAuthority(t, "authority"), t.TempDir()
	cert, key := a.issue(t, "server")
	for name, text := range map[string][]byte{"cert.pem": cert, "key.pem": key, "nonsense": []byte("x")} {
		replace(t, filepath.Join(dir, name), text)
	}
	for name, files := range map[string]listener.Files{
		"are both required":    {Cert: "cert.pem"},
		"both required":        {ClientCA: "cert.pem"},
		"no such file":         {Cert: "cert.pem", Key: "missing.pem"},
		"failed to find any":   {Cert: "nonsense", Key: "key.pem"},
		"holds no certificate": {Cert: "cert.pem", Key: "key.pem", ClientCA: "nonsense"},
	} {
		for _, file := range []*string{&files.Cert, &files.Key, &files.ClientCA} {
			if *file != "" {
				*file = filepath.Join(dir, *file)
			}
		}
		if _, err := listener.NewCertificate(files, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one with %q", err, name)
		}
	}
}
