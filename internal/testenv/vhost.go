package testenv

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// VirtualHost makes a virtual host on the RabbitMQ behind AMQP until the test ends, and returns the URL of the
// broker with it.
func VirtualHost(t testing.TB) string {
	t.Helper()
	broker, err := url.Parse(AMQP(t))
	if err != nil {
		t.Fatalf("parse the URL of the broker: %v", err)
	}
	name := "umbel-test-" + strings.ToLower(rand.Text()[:8])
	Manage(t, http.MethodPut, "/api/vhosts/"+name, "")
	t.Cleanup(func() { Manage(t, http.MethodDelete, "/api/vhosts/"+name, "") })
	Manage(t, http.MethodPut, "/api/permissions/"+name+"/"+broker.User.Username(), `{"configure":".*","write":".*","read":".*"}`)
	if t.Failed() {
		t.FailNow()
	}
	broker.Path = "/" + name
	return broker.String()
}

// Manage sends a request to the management API of the RabbitMQ behind AMQP, and returns the body of the response. It costs
// a hundredth of what rabbitmqctl does. Headers are pairs of a name and a value.
func Manage(t testing.TB, method, path, body string, headers ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 3*time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, Management(t)+path, strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	request.Close = true // leaves no goroutine behind
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return nil
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		t.Errorf("%s %s: %s, %v", method, path, response.Status, err)
	}
	return text
}
