package main_test

import (
	"bytes"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestEndToEndSecretsAreNowhere gives a real worker tasks with secrets in arguments, results and errors, and looks for them in
// pages, the API, the log and the files of the history.
func TestEndToEndSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	const marker = "hunter2-marker"
	c := newCluster(t, ownRedis(t))
	c.work(t, "fork@test", "celery", "-P", "solo", "-E")
	dir := t.TempDir()
	d := start(t, c.env, "serve", "--data-dir", dir, "--log-level", "debug", "--redact", "task tasks.boom all", "--redact", `text card \d+`)
	d.connected(t)

	ids := map[string]string{
		c.do(t, clientCall{Call: "add", Kwargs: map[string]any{
			"x": []any{map[string]any{"db_password": marker}}, "y": []any{map[string]any{"a": map[string]any{"apiKey": "it's " + marker}}},
		}})[0]: "SUCCESS", // whose result is both
		c.call(t, "add", map[string]any{"Authorization": "Bearer " + marker}, 1):     "FAILURE",
		c.call(t, "boom", marker+" is wrong"):                                        "FAILURE", // in the error, too
		c.call(t, "add", "card 4111"+"111111", " amqp://user:"+marker+"@host/vhost"): "SUCCESS",
	}
	paths := []string{"", "tasks", "tasks?q=" + url.QueryEscape(marker), "failures", "duplicates", "workers", "workers/fork@test", "settings", "api/v1/tasks/export", "api/v1/failures"}
	for id, state := range ids {
		d.inState(t, id, state)
		paths = append(paths, "tasks/"+id, "api/v1/tasks/"+id)
	}
	for _, path := range paths {
		_, body := d.fetch(t, path)
		if path == "tasks?q="+url.QueryEscape(marker) {
			continue // the page repeats what was searched for
		}
		if bytes.Contains(body, []byte(marker)) || bytes.Contains(body, []byte("411111")) {
			t.Errorf("%s shows a secret", path)
		}
	}
	if status := d.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("stopped with status %d", status)
	}
	if bytes.Contains([]byte(d.lines.tail(100_000)), []byte(marker)) {
		t.Error("the log has a secret")
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(marker)) || bytes.Contains(b, []byte("411111")) {
			t.Errorf("%s has a secret", e.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
