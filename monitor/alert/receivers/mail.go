package receivers

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"strings"
	"time"

	"github.com/umbelhq/umbel/internal/truncate"
)

// maxSubject is how long the subject of a mail may be, bytes.
const maxSubject = 200

// send sends one mail. Password and content go over an encrypted connection, unless the server is on this host or plain text
// is allowed.
func (m *Email) send(ctx context.Context, n Notification) error {
	host, _, err := net.SplitHostPort(m.Server)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", m.Server)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		_ = conn.Close()
		return err
	}
	defer c.Close() //nolint:errcheck // Quit tells
	if err := m.session(c, host); err != nil {
		return permanent(err)
	}
	if err := m.write(c, n); err != nil {
		return permanent(err)
	}
	_ = c.Quit() // the mail was accepted
	return nil
}

// session encrypts the connection and logs in.
func (m *Email) session(c *smtp.Client, host string) error {
	encrypted, _ := c.Extension("STARTTLS")
	if encrypted {
		if err := c.StartTLS(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}); err != nil {
			return err
		}
	}
	local := host == "localhost" || net.ParseIP(host).IsLoopback()
	if !encrypted && !local && !m.Plain {
		return fmt.Errorf("%w: %s offers no encryption (allow_plain_text sends without)", ErrPermanent, m.Server)
	}
	if m.User == "" {
		return nil
	}
	return c.Auth(smtp.PlainAuth("", m.User, m.Password, host)) // which refuses to send a password in the open
}

func (m *Email) write(c *smtp.Client, n Notification) error {
	if err := c.Mail(address(m.From)); err != nil {
		return err
	}
	for _, to := range m.To {
		if err := c.Rcpt(address(to)); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(m.message(n)); err != nil {
		return err
	}
	return w.Close()
}

// message is the mail. No header can be injected: addresses are parsed, the subject is one encoded line, and the body is
// base64.
func (m *Email) message(n Notification) []byte {
	var b bytes.Buffer
	header := func(name, value string) { fmt.Fprintf(&b, "%s: %s\r\n", name, oneLine(value)) }
	header("From", canonical(m.From))
	to := make([]string, len(m.To))
	for i, a := range m.To {
		to[i] = canonical(a)
	}
	header("To", strings.Join(to, ", "))
	header("Subject", mime.QEncoding.Encode("utf-8", truncate.Bytes(oneLine(n.Summary), maxSubject)))
	header("Date", n.At.Format(time.RFC1123Z))
	_, domain, _ := strings.Cut(address(m.From), "@")
	header("Message-ID", "<"+strings.Map(idChar, n.ID)+"@"+domain+">")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "base64")
	header("Auto-Submitted", "auto-generated")
	b.WriteString("\r\n")
	text := base64.StdEncoding.EncodeToString([]byte(strings.ReplaceAll(n.Text(), "\n", "\r\n")))
	for len(text) > 0 {
		line := text[:min(76, len(text))]
		text = text[len(line):]
		b.WriteString(line + "\r\n")
	}
	return b.Bytes()
}

// idChar keeps what a message ID may hold.
func idChar(c rune) rune {
	if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '.' {
		return c
	}
	return '-'
}

// address is the address alone, without a name.
func address(text string) string {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return ""
	}
	return a.Address
}

func canonical(text string) string {
	a, err := mail.ParseAddress(text)
	if err != nil {
		return ""
	}
	return a.String()
}

// permanent marks what a mail server refuses for good.
func permanent(err error) error {
	if refused, ok := errors.AsType[*textproto.Error](err); ok && refused.Code/100 == 5 {
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return err
}
