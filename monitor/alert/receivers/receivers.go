// Package receivers tells people of alerts: by a webhook, a message to a chat, e-mail, or a command. Receivers are configured
// by a file alone, so that nobody can set from a page where Umbel connects or what it runs. What they are sent is made by
// package evaluate.
package receivers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file.
const (
	MaxReceivers = 50
	maxFile      = 1 << 20
	maxName      = 100
	maxEmails    = 20
)

// Receiver is where notifications go. One of Webhook, Slack, Email and Command is set.
type Receiver struct {
	Name string `yaml:"name"`
	// Webhook is a URL that gets the notification as JSON, signed with Secret.
	Webhook string   `yaml:"webhook"`
	Secret  string   `yaml:"secret"`
	Slack   string   `yaml:"slack"` // URL of an incoming webhook that takes Slack's messages
	Email   *Email   `yaml:"email"`
	Command []string `yaml:"command"` // program and arguments; it gets the notification as JSON on standard input
}

// Email says how mail is sent.
type Email struct {
	Server   string   `yaml:"server"` // host:port; STARTTLS is used where it is offered
	From     string   `yaml:"from"`
	To       []string `yaml:"to"`
	User     string   `yaml:"user"` // empty sends without authentication
	Password string   `yaml:"password"`
	// Plain allows sending without encryption to other hosts than this one.
	Plain bool `yaml:"allow_plain_text"`
}

// Kind is webhook, slack, email or command.
func (r *Receiver) Kind() string {
	switch {
	case r.Slack != "":
		return "slack"
	case r.Email != nil:
		return "email"
	case len(r.Command) > 0:
		return "command"
	default:
		return "webhook"
	}
}

// Address says where notifications go, without what gives access.
func (r *Receiver) Address() string {
	switch {
	case r.Slack != "":
		return masked(r.Slack)
	case r.Email != nil:
		return strings.Join(r.Email.To, ", ") + " by " + r.Email.Server
	case len(r.Command) > 0:
		return r.Command[0]
	default:
		return masked(r.Webhook)
	}
}

// masked is a URL without user, path and query: chats have their tokens in the path.
func masked(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "…"
	}
	return u.Scheme + "://" + u.Host + "/…"
}

// Config is what a file of receivers says.
type Config struct {
	URL       string     `yaml:"url"` // of Umbel's pages, for links; empty leaves them out
	Receivers []Receiver `yaml:"receivers"`
}

// Read reads a file of receivers. Its errors are single sentences that say which receiver is wrong, without its secrets.
func Read(r io.Reader) (file Config, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return file, err
	}
	if len(b) > maxFile {
		return file, errors.New("the file is larger than 1 MiB")
	}
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		var lines *yaml.TypeError
		if errors.As(err, &lines) && len(lines.Errors) > 0 {
			text, _, _ := strings.Cut(lines.Errors[0], " `") // what follows is a value
			return file, fmt.Errorf("the file is not as expected: %s", text)
		}
		return file, fmt.Errorf("the file is no YAML: %w", err)
	}
	if len(file.Receivers) > MaxReceivers {
		return file, fmt.Errorf("there are more than %d receivers", MaxReceivers)
	}
	if file.URL = strings.TrimRight(file.URL, "/"); file.URL != "" {
		if err := checkURL(file.URL); err != nil {
			return file, fmt.Errorf("url: %w", err)
		}
	}
	names := map[string]bool{}
	for i := range file.Receivers {
		v := &file.Receivers[i]
		if err := v.check(); err != nil {
			return file, fmt.Errorf("receiver %d (%q): %w", i+1, v.Name, err)
		}
		if names[v.Name] {
			return file, fmt.Errorf("two receivers have the name %q", v.Name)
		}
		names[v.Name] = true
	}
	return file, nil
}

func (r *Receiver) check() error {
	if r.Name == "" || len(r.Name) > maxName || strings.ContainsFunc(r.Name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return fmt.Errorf("a name has 1 to %d printable characters", maxName)
	}
	kinds := 0
	for _, set := range []bool{r.Webhook != "", r.Slack != "", r.Email != nil, len(r.Command) > 0} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return errors.New("it needs exactly one of webhook, slack, email and command")
	case r.Secret != "" && r.Webhook == "":
		return errors.New("only a webhook has a secret")
	case r.Webhook != "":
		return checkURL(r.Webhook)
	case r.Slack != "":
		return checkURL(r.Slack)
	case r.Email != nil:
		return r.Email.check()
	case slices.Contains(r.Command, "") || strings.ContainsRune(strings.Join(r.Command, ""), 0):
		return errors.New("an argument of the command is empty")
	}
	return nil
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("its URL does not begin with http:// or https:// and a host")
	}
	return nil
}

func (m *Email) check() error {
	if _, port, err := net.SplitHostPort(m.Server); err != nil || port == "" {
		return errors.New("the server of its mail is not host:port")
	}
	if len(m.To) == 0 || len(m.To) > maxEmails {
		return fmt.Errorf("mail goes to 1 to %d addresses", maxEmails)
	}
	for _, a := range append([]string{m.From}, m.To...) {
		if _, err := mail.ParseAddress(a); err != nil || strings.ContainsAny(a, "\r\n") {
			return fmt.Errorf("%q is no mail address", a)
		}
	}
	return nil
}

// Notification is what a receiver is told.
type Notification struct {
	ID      string    `json:"id"` // the same when it is sent again
	At      time.Time `json:"at"`
	Summary string    `json:"summary"`           // one line
	Cluster string    `json:"cluster,omitempty"` // its name, where there are several
	Test    bool      `json:"test,omitempty"`
	Alerts  []Alert   `json:"alerts"`
	More    int       `json:"more,omitempty"` // alerts that are left out
	Link    string    `json:"link,omitempty"` // of the page of alerts, if the address of Umbel is known
}

// Alert is one alert of a notification.
type Alert struct {
	Status  string     `json:"status"` // firing or resolved
	Rule    string     `json:"rule"`   // its name
	RuleID  int64      `json:"rule_id"`
	Subject string     `json:"subject,omitempty"`
	Text    string     `json:"text"`
	Value   float64    `json:"value"`
	Start   time.Time  `json:"start"`
	End     *time.Time `json:"end,omitempty"`
	Query   string     `json:"query,omitempty"`
	Link    string     `json:"link,omitempty"`
}

// ErrPermanent is wrapped by an error of Send if sending again cannot help.
var ErrPermanent = errors.New("refused")

// Send tells a receiver, and returns when it has accepted. It may have to be called again after an error: receivers know a
// repetition by Notification.ID.
func (r *Receiver) Send(ctx context.Context, n Notification) error {
	switch {
	case r.Slack != "":
		return r.sendSlack(ctx, n)
	case r.Email != nil:
		return r.Email.send(ctx, n)
	case len(r.Command) > 0:
		return r.run(ctx, n)
	default:
		return r.sendWebhook(ctx, n)
	}
}
