package main_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
)

// fetchText returns the body of a path below that of a dashboard.
func fetchText(d *dashboard, path string) (string, error) {
	res, err := http.Get(d.url + path)
	if err != nil {
		return "", err
	}
	defer res.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %d %s", path, res.StatusCode, text)
	}
	return string(text), err
}

// TestEndToEndClusters watches workers on RabbitMQ and on Redis at once, and a broker that is away.
func TestEndToEndClusters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shop, billing := newCluster(t, testenv.AMQP(t)), newCluster(t, ownRedis(t))
	file := filepath.Join(dir, "clusters.json")
	text, err := json.Marshal([]map[string]any{{"name": "billing", "broker-url": billing.broker}, {"name": "away", "broker-url": "redis://127.0.0.1:1/0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	d := start(t, []string{"UMBEL_CLUSTER=shop=" + shop.broker, "UMBEL_DATA_DIR=" + dir}, "serve", "--clusters-file", file)
	for name, c := range map[string]*cluster{"shop": shop, "billing": billing} {
		c.work(t, "solo-"+name+"@test", "celery-"+name, "-P", "solo", "-E")
	}
	eventually(t, timeout, func() error {
		body, err := fetchText(d, "api/v1/clusters")
		if err != nil {
			return err
		}
		var list struct {
			Items []struct {
				Name      string
				Connected bool
				Workers   int `json:"workers_online"`
			}
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			return err
		}
		if len(list.Items) != 3 {
			return fmt.Errorf("%d clusters, want 3", len(list.Items))
		}
		for _, c := range list.Items {
			if here := c.Name != "away"; c.Connected != here || here && c.Workers == 0 {
				return fmt.Errorf("%+v", c)
			}
		}
		return nil
	})
	for name, other := range map[string]string{"shop": "billing", "billing": "shop"} {
		body, err := fetchText(d, "clusters/"+name+"/api/v1/workers")
		if err != nil || !strings.Contains(body, "solo-"+name+"@test") || strings.Contains(body, "solo-"+other+"@test") {
			t.Errorf("workers of %s: %v %s", name, err, body)
		}
		if _, err := os.Stat(filepath.Join(dir, "clusters", name, "history.db")); err != nil {
			t.Errorf("%s has no history of its own: %v", name, err)
		}
	}
}
