package receivers

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Headers of a webhook.
const (
	KeyHeader       = "Idempotency-Key" // Notification.ID
	TimeHeader      = "Umbel-Timestamp" // when it was sent, seconds since 1970 UTC
	SignatureHeader = "Umbel-Signature" // sha256= and what Sign returns
	maxAnswer       = 64 << 10          // bytes read of an answer
)

// Sign returns the hex HMAC-SHA256 of a webhook with its secret, over the timestamp, a full stop and the body.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func (r *Receiver) sendWebhook(ctx context.Context, n Notification) error {
	body, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return post(ctx, r.Webhook, body, func(h http.Header) {
		h.Set(KeyHeader, n.ID)
		if r.Secret != "" {
			at := strconv.FormatInt(time.Now().Unix(), 10)
			h.Set(TimeHeader, at)
			h.Set(SignatureHeader, "sha256="+Sign(r.Secret, at, body))
		}
	})
}

// sendSlack sends a message of plain text: what tasks are called must not become markup or mention anybody.
func (r *Receiver) sendSlack(ctx context.Context, n Notification) error {
	escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	body, err := json.Marshal(map[string]any{"text": escape.Replace(n.Text()), "mrkdwn": false, "unfurl_links": false})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return post(ctx, r.Slack, body, func(http.Header) {})
}

// client follows no redirects: where to is not in the file.
var client = &http.Client{ //nolint:gochecknoglobals // its connections are shared
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func post(ctx context.Context, to string, body []byte, headers func(http.Header)) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: its URL is invalid", ErrPermanent)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "Umbel")
	headers(q.Header)
	answer, err := client.Do(q)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the URL, which may hold a token
		}
		return fmt.Errorf("%s: %w", masked(to), err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer))
	if answer.StatusCode/100 == 2 {
		return nil
	}
	err = fmt.Errorf("%s answered %d %s", masked(to), answer.StatusCode, http.StatusText(answer.StatusCode))
	if s := answer.StatusCode; s/100 == 3 || s/100 == 4 && s != http.StatusTooManyRequests && s != http.StatusRequestTimeout {
		return fmt.Errorf("%w: %w", ErrPermanent, err)
	}
	return err
}

// Text writes a notification for people, a line for each alert.
func (n Notification) Text() string {
	var b strings.Builder
	b.WriteString(n.Summary)
	for _, a := range n.Alerts {
		b.WriteString("\n" + a.line())
		if a.Link != "" {
			b.WriteString("\n  " + a.Link)
		}
	}
	if n.More > 0 {
		fmt.Fprintf(&b, "\nand %d more", n.More)
	}
	if n.Link != "" {
		b.WriteString("\n" + n.Link)
	}
	return b.String()
}

// line is an alert on one line, whatever is in the names of tasks.
func (a Alert) line() string {
	text := strings.ToUpper(a.Status) + " " + a.Rule + ": " + a.Text
	if a.End != nil {
		text += " Ended " + a.End.UTC().Format(time.RFC3339) + " after " + a.End.Sub(a.Start).Round(time.Second).String() + "."
	}
	return oneLine(text)
}

// oneLine replaces control characters.
func oneLine(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\u2028' || c == '\u2029' {
			return ' '
		}
		return c
	}, s)
}
