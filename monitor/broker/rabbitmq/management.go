package rabbitmq

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/umbelhq/umbel/monitor/broker"
)

const (
	maxAnswer = 16 << 20 // bytes of one response
	pageSize  = 500      // the most that RabbitMQ allows
	maxPages  = 10
)

// managementURL is where the management API is, and who may use it.
type managementURL struct {
	base           string // without a login and without a slash at the end
	user, password string
	host           string
	endpoint       endpoint // whose vhost and TLS it is
}

// parseManagementURL reads a URL. Its errors hold no part of it that could be a password.
func parseManagementURL(text string, e endpoint) (*managementURL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("management URL cannot be read: write it as http://user:password@host:15672, with special " +
			"characters in user and password percent-encoded")
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("management URL is not that of a web server: write it as http://user:password@host:15672")
	}
	m := &managementURL{user: e.user, password: e.password, host: u.Hostname(), endpoint: e}
	if u.User != nil {
		m.user = u.User.Username()
		m.password, _ = u.User.Password()
	}
	m.base = strings.TrimRight((&url.URL{Scheme: u.Scheme, Host: u.Host}).JoinPath(u.EscapedPath()).String(), "/")
	if u.Scheme == "https" {
		if _, err := e.tls.Config(m.host); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// management is a client of the management API. It is safe for concurrent use.
type management struct {
	*managementURL
	client *http.Client
}

// open returns a client that close must follow.
func (u *managementURL) open() *management {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1}
	if config, err := u.endpoint.tls.Config(u.host); err == nil { // checked before; else the system's authorities
		t.TLSClientConfig = config
	}
	return &management{u, &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (m *management) close() { m.client.CloseIdleConnections() }

// get reads one response.
func (m *management) get(ctx context.Context, path string, query url.Values, into any) error {
	address := m.base + "/api/" + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return errors.New("its URL cannot be used")
	}
	request.SetBasicAuth(m.user, m.password)
	request.Header.Set("Accept", "application/json")
	response, err := m.client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // which repeats the URL
			err = wrapped.Err
		}
		return err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("user %q was refused (%s): check its password, and that it has the tag monitoring", m.user,
			response.Status)
	case http.StatusNotFound:
		return fmt.Errorf("it does not know vhost %q (%s)", m.endpoint.vhost, response.Status)
	default:
		return fmt.Errorf("it answers %s", response.Status)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if len(body) > maxAnswer {
		return fmt.Errorf("its answer is longer than %d MiB", maxAnswer>>20)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return errors.New("its answer is not what the management API says: check the URL")
	}
	return nil
}

// object is a JSON object of which any member may be missing or of another type than expected.
type object map[string]json.RawMessage

// UnmarshalJSON takes anything else for an empty object.
func (o *object) UnmarshalJSON(b []byte) error {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) == nil {
		*o = m
	}
	return nil
}

// member reads a member, nil if it is missing or no T.
func member[T any](o object, name string) *T {
	var v *T
	if json.Unmarshal(o[name], &v) != nil {
		return nil
	}
	return v
}

// count reads a number that may be written like 3.0, nil if it is none.
func (o object) count(name string) *int64 {
	f := member[float64](o, name)
	if f == nil || *f < 0 || *f > 1<<53 {
		return nil
	}
	return new(int64(*f))
}

// text reads a string, empty if it is none.
func (o object) text(name string) string {
	if s := member[string](o, name); s != nil {
		return *s
	}
	return ""
}

// object reads an object, empty if it is none.
func (o object) object(name string) object {
	if v := member[object](o, name); v != nil {
		return *v
	}
	return nil
}

// queues lists the queues of the vhost, and says whether these are all.
func (m *management) queues(ctx context.Context) (list []broker.Queue, all bool, err error) {
	query := url.Values{
		"page_size": {strconv.Itoa(pageSize)}, "sort": {"name"},
		"columns": {"name,type,state,durable,arguments,consumers,messages_ready,messages_unacknowledged,message_stats"},
	}
	for page := 1; page <= maxPages; page++ {
		query.Set("page", strconv.Itoa(page))
		var answer json.RawMessage
		if err := m.get(ctx, "queues/"+url.PathEscape(m.endpoint.vhost), query, &answer); err != nil {
			return nil, false, err
		}
		items, pages, err := parseQueues(answer)
		if err != nil {
			return nil, false, err
		}
		list = append(list, items...)
		if page >= pages {
			return list, true, nil
		}
	}
	return list, false, nil
}

// parseQueues reads a page of queues, or the bare list that comes without paging.
func parseQueues(answer json.RawMessage) (list []broker.Queue, pages int, err error) {
	var page struct {
		Items []object
		Pages int `json:"page_count"`
	}
	if err := json.Unmarshal(answer, &page.Items); err != nil {
		if err := json.Unmarshal(answer, &page); err != nil || page.Items == nil {
			return nil, 0, errors.New("its answer is no list of queues: check the URL")
		}
	}
	for _, item := range page.Items {
		if name := item.text("name"); name != "" {
			list = append(list, item.queue(name))
		}
	}
	return list, page.Pages, nil
}

// queue converts what the API reports of one queue. All of it may be missing, which is not 0.
func (o object) queue(name string) broker.Queue {
	stats := o.object("message_stats")
	return broker.Queue{
		Name:        name,
		Ready:       o.count("messages_ready"),
		Unacked:     o.count("messages_unacknowledged"),
		Consumers:   o.count("consumers"),
		Published:   stats.count("publish"),
		Delivered:   stats.count("deliver_get"),
		Acked:       stats.count("ack"),
		Redelivered: stats.count("redeliver"),
		Type:        o.text("type"),
		State:       o.text("state"),
		MaxPriority: o.object("arguments").count("x-max-priority"),
		Durable:     member[bool](o, "durable"),
	}
}

// broker adds to info what the API reports of the broker, as far as the user has permission.
func (m *management) broker(ctx context.Context, info *broker.Info) {
	var overview object
	if m.get(ctx, "overview", nil, &overview) == nil {
		info.Version = cmp.Or(overview.text("rabbitmq_version"), info.Version)
		info.Clients = overview.object("object_totals").count("connections")
		if stopped := member[bool](overview, "disable_stats"); stopped != nil && *stopped {
			info.Warnings = append(info.Warnings,
				"RabbitMQ gathers no statistics (management.disable_stats): rates are unknown.")
		}
	}
	var nodes []object
	if m.get(ctx, "nodes", nil, &nodes) != nil {
		return
	}
	for _, node := range nodes {
		info.Memory = sum(info.Memory, node.count("mem_used"))
		info.MemoryLimit = sum(info.MemoryLimit, node.count("mem_limit"))
		for _, alarm := range []struct{ name, of string }{{"mem_alarm", "memory"}, {"disk_free_alarm", "disk space"}} {
			if on := member[bool](node, alarm.name); on != nil && *on {
				info.Warnings = append(info.Warnings,
					fmt.Sprintf("Node %s is short of %s: RabbitMQ takes no messages.", node.text("name"), alarm.of))
			}
		}
	}
}

// sum adds what is known.
func sum(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}
