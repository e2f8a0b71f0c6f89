package broker

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS says how a connection is secured. The zero value trusts the system's authorities.
type TLS struct {
	CAFile     string // PEM file of the authorities to trust instead of the system's
	CertFile   string // PEM file of the client's certificate, with KeyFile
	KeyFile    string // PEM file of the client's key
	ServerName string // name in the broker's certificate, if it is not the host of the URL
	// AnyName accepts a certificate for another name, if it is signed by a trusted authority.
	AnyName bool
	// InsecureSkipVerify accepts any certificate, and so anybody in between.
	InsecureSkipVerify bool
}

// Override returns t with the fields that o sets.
func (t TLS) Override(o TLS) TLS {
	return TLS{
		CAFile:             cmp.Or(o.CAFile, t.CAFile),
		CertFile:           cmp.Or(o.CertFile, t.CertFile),
		KeyFile:            cmp.Or(o.KeyFile, t.KeyFile),
		ServerName:         cmp.Or(o.ServerName, t.ServerName),
		AnyName:            o.AnyName || t.AnyName,
		InsecureSkipVerify: o.InsecureSkipVerify || t.InsecureSkipVerify,
	}
}

// Config is for a connection to host. It reads the files, which may have been renewed since the last time.
func (t TLS) Config(host string) (*tls.Config, error) {
	c := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         cmp.Or(t.ServerName, host),
		InsecureSkipVerify: t.InsecureSkipVerify, //nolint:gosec // the operator's explicit choice
	}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read TLS authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("TLS authorities file %s holds no PEM certificate", t.CAFile)
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("TLS client certificate and key go together: give both files or none")
	}
	if t.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load TLS client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if t.AnyName && !t.InsecureSkipVerify {
		c.InsecureSkipVerify = true // the name alone: VerifyConnection does the rest
		c.VerifyConnection = func(s tls.ConnectionState) error { return verifyChain(s, c.RootCAs) }
	}
	return c, nil
}

// verifyChain checks everything about the other side's certificate but its name.
func verifyChain(s tls.ConnectionState, roots *x509.CertPool) error {
	o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, c := range s.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(o)
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}
