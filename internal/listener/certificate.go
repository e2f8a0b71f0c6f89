package listener

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Files name what a Certificate is read from.
type Files struct {
	Cert, Key string // PEM, required
	ClientCA  string // PEM; clients must present a certificate that it has signed. Empty asks for none.
}

// Certificate is that of a server. It is read again, at a handshake, when its files have changed; while they cannot be
// used, the one before stays. It is safe for concurrent use.
type Certificate struct {
	files Files
	log   *slog.Logger

	mu     sync.Mutex
	seen   [3]stamp    // of the files when they were read last
	config *tls.Config // of what could be read last
}

// stamp tells whether a file has changed.
type stamp struct {
	at   time.Time
	size int64
}

// NewCertificate reads the files.
func NewCertificate(files Files, log *slog.Logger) (*Certificate, error) {
	if files.Cert == "" || files.Key == "" {
		return nil, errors.New("a certificate and its key are both required")
	}
	c := &Certificate{files: files, log: log, seen: files.stamps()}
	var err error
	if c.config, err = files.read(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns a configuration that follows the files: TLS 1.2 and newer, with HTTP/2.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: protocols(),
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

func protocols() []string { return []string{"h2", "http/1.1"} }

// current returns the configuration of the files as they are.
func (c *Certificate) current() *tls.Config {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.files.stamps()
	if now == c.seen {
		return c.config
	}
	c.seen = now
	config, err := c.files.read()
	if err != nil {
		c.log.Error("changed certificate cannot be used, the one before stays", "file", c.files.Cert, "error", err)
		return c.config
	}
	c.config = config
	c.log.Info("certificate read again", "file", c.files.Cert, "expires", config.Certificates[0].Leaf.NotAfter)
	return config
}

// stamps returns those of all files, zero for one that cannot be read.
func (f Files) stamps() (all [3]stamp) {
	for i, name := range []string{f.Cert, f.Key, f.ClientCA} {
		if info, err := os.Stat(name); err == nil && name != "" {
			all[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return all
}

// read reads the files. Its error holds no part of them.
func (f Files) read() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols(), Certificates: []tls.Certificate{pair}}
	if f.ClientCA == "" {
		return config, nil
	}
	pem, err := os.ReadFile(f.ClientCA)
	if err != nil {
		return nil, err
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", f.ClientCA)
	}
	return config, nil
}
