package rabbitmq_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/broker"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	testenv.AMQP(t)
	ca, stranger := newAuthority(t), newAuthority(t)
	server := ca.issue(t, "broker.test", time.Now().Add(time.Hour))
	expired := ca.issue(t, "broker.test", time.Now().Add(-time.Hour))
	client := ca.issue(t, "umbel", time.Now().Add(time.Hour))
	named := func(o broker.TLS) broker.TLS { o.ServerName = "broker.test"; return o }
	ask := func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, ca.pool }
	askEarly := func(c *tls.Config) { ask(c); c.MaxVersion = tls.VersionTLS12 }
	tests := map[string]struct {
		server  certificate
		tune    func(*tls.Config)
		options broker.TLS
		query   url.Values
		want    []string // texts of the error, none if it must work
	}{
		"known authority":    {server: server, options: named(broker.TLS{CAFile: ca.file})},
		"authority in query": {server: server, query: url.Values{"ssl_ca_certs": {ca.file}, "ssl_server_hostname": {"broker.test"}}},
		"names of RabbitMQ": {
			server: server, query: url.Values{"cacertfile": {ca.file}, "server_name_indication": {"broker.test"}},
		},
		"no verification":          {server: expired, options: broker.TLS{InsecureSkipVerify: true}},
		"no verification in query": {server: expired, query: url.Values{"ssl_cert_reqs": {"CERT_NONE"}}},
		"client certificate": {
			server: server, tune: ask,
			options: named(broker.TLS{CAFile: ca.file, CertFile: client.file, KeyFile: client.keyFile}),
		},
		"options win over the query": {
			server: server, query: url.Values{"cacertfile": {stranger.file}}, options: named(broker.TLS{CAFile: ca.file}),
		},
		"unknown authority": {
			server: server, options: named(broker.TLS{CAFile: stranger.file}),
			want: []string{"signed by an unknown authority; name the file of its authority"},
		},
		"other name": {
			server: server, options: broker.TLS{CAFile: ca.file, ServerName: "other.test"},
			want: []string{`the broker's certificate is not for "other.test"`, "set the TLS server name"},
		},
		"expired": {
			server: expired, options: named(broker.TLS{CAFile: ca.file}),
			want: []string{"is not accepted", "expired", "renew it"},
		},
		"client certificate missing": {
			server: server, tune: ask, options: named(broker.TLS{CAFile: ca.file}), want: []string{"the handshake broke off", "whether the broker wants a client certificate"},
		},
		"client certificate missing before TLS 1.3": {
			server: server, tune: askEarly, options: named(broker.TLS{CAFile: ca.file}),
			want: []string{"it may want a client certificate"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, func(l net.Listener) net.Listener {
				config := &tls.Config{Certificates: []tls.Certificate{test.server.pair}}
				if test.tune != nil {
					test.tune(config)
				}
				return tls.NewListener(l, config)
			})
			o := options(t)
			o.URL = p.url(t, "amqps") + "?" + test.query.Encode()
			o.TLS = test.options
			b := open(t, o)
			if test.want != nil {
				_, err := b.Subscribe(t.Context())
				expectError(t, err, "", test.want...)
				return
			}
			s := connect(t, b)
			if err := publisher(t, o.Exchange)(t.Context(), broker.Message{Body: []byte("1")}); err != nil {
				t.Fatalf("publish: %v", err)
			}
			receive(t, s, 1)
		})
	}
}

// authority signs certificates.
type authority struct {
	certificate
	pool *x509.CertPool
}

// certificate is a key pair, in memory and in files.
type certificate struct {
	pair          tls.Certificate
	file, keyFile string
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "authority"},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	key := newKey(t)
	a := authority{certificate: newCertificate(t, template, template, key, key), pool: x509.NewCertPool()}
	a.pool.AddCert(a.pair.Leaf)
	return a
}

// issue makes a certificate for name, good for servers and clients until notAfter.
func (a authority) issue(t *testing.T, name string, notAfter time.Time) certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: name},
		DNSNames:     []string{name},
		NotBefore:    notAfter.Add(-2 * time.Hour),
		NotAfter:     notAfter,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	return newCertificate(t, template, a.pair.Leaf, newKey(t), a.pair.PrivateKey.(*ecdsa.PrivateKey))
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("generate key: %v", err)
	}
	return key
}

func newCertificate(t *testing.T, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatalf("create certificate: %v", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatalf("encode key: %v", err)
	}
	dir := t.TempDir()
	c := certificate{file: filepath.Join(dir, "cert.pem"), keyFile: filepath.Join(dir, "key.pem")}
	for file, block := range map[string]*pem.Block{
		c.file:    {Type: "CERTIFICATE", Bytes: der},
		c.keyFile: {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatalf("write file: %v", err)
		}
	}
	if c.pair, err = tls.LoadX509KeyPair(c.file, c.keyFile); err != nil {
		t.Fatalf("load key pair: %v", err)
	}
	return c
}
