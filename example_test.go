package umbel_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"

	"github.com/umbelhq/umbel"
)

// A host program mounts the dashboard under a path of its own. DataDir says where the history is kept. The broker here
// is away, which pages say.
func Example() {
	u, err := umbel.New(umbel.Options{
		BrokerURL: "amqp://guest:guest@127.0.0.1:1//", Prefix: "/ops/celery", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = u.Close() }()
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- u.Run(ctx) }()

	mux := http.NewServeMux()
	mux.Handle("/ops/celery/", u)
	server := httptest.NewServer(mux)
	defer server.Close()

	status, page := get(server.URL + "/ops/celery/tasks")
	fmt.Println("page", status, strings.Contains(page, "<title>Tasks · Umbel</title>"))
	sheet := regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)">`).FindStringSubmatch(page)[1]
	status, css := get(server.URL + sheet)
	fmt.Println("style sheet", status, strings.HasPrefix(sheet, "/ops/celery/"), css != "")
	status, overview := get(server.URL + "/ops/celery/api/v1/overview")
	fmt.Println("API", status, strings.Contains(overview, `"by_state":{`))

	stop()
	fmt.Println("stopped", <-stopped)
	// Output:
	// page 200 true
	// style sheet 200 true true
	// API 200 true
	// stopped <nil>
}

func get(url string) (int, string) {
	res, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, string(body)
}
