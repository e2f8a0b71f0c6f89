package main_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/internal/testpostgres"
)

// TestPostgresAwayAtStart starts Umbel before PostgreSQL, whose clock is then an hour ahead.
func TestPostgresAwayAtStart(t *testing.T) {
	t.Parallel()
	server := testpostgres.NewServer(t)
	d := start(t, nil, "serve", "--broker-url", "amqp://127.0.0.1:1/", "--history", server.URL)
	d.await(t, "history cannot be reached")
	for path, want := range map[string]string{
		"": "PostgreSQL, which has the history, does not answer", "tasks?q=x": "Try again", "api/v1/tasks": "does not answer", "readyz": "not ready",
	} {
		status, body, err := fetch(t.Context(), d.url+path)
		if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(string(body), want) || strings.Contains(string(body), "127.0.0.1:") {
			t.Errorf("/%s = %d, %v, %s; want 503 and %q", path, status, err, body, want)
		}
	}
	if status, _, err := fetch(t.Context(), d.url+"healthz"); err != nil || status != http.StatusOK {
		t.Errorf("/healthz = %d, %v", status, err)
	}
	server.Start("LD_PRELOAD="+testenv.FakeTime(t), "FAKETIME=+3600", "FAKETIME_DONT_FAKE_MONOTONIC=1")
	const notice = "The clock of the database and that of this host differ by 1h0m0s"
	eventually(t, timeout, func() error {
		status, body, err := fetch(t.Context(), d.url+"settings")
		if err == nil && (status != http.StatusOK || !strings.Contains(string(body), notice)) {
			err = fmt.Errorf("/settings = %d, want it to say %q", status, notice)
		}
		return err
	})
	d.await(t, notice)
	status, _, complaint := once(t, nil, nil, "serve", "--broker-url", "amqp://127.0.0.1:1/", "--listen", "127.0.0.1:0", "--history", server.URL+"-none")
	if status != 1 || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, "has no such database") {
		t.Errorf("a wrong database: status %d and %q, want 1 and one sentence", status, complaint)
	}
}

// TestNodesAreRefused starts nodes on a database that will not serve them, however long they wait.
func TestNodesAreRefused(t *testing.T) {
	t.Parallel()
	newer, plain := testpostgres.Schema(t), testpostgres.Schema(t)
	start(t, nil, "serve", "--broker-url", "amqp://127.0.0.1:1/", "--history", newer).end(t, syscall.SIGTERM)
	testpostgres.Execute(t, newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, true)")
	for says, address := range map[string]string{
		"written by a newer version of Umbel (schema 1000": newer,
		"check the name, the password and pg_hba.conf":     plain + "&user=nobody-of-that-name",
		"PostgreSQL is read-only, such as a replica":       plain + "&default_transaction_read_only=on",
	} {
		status, _, complaint := once(t, nil, nil, "serve", "--broker-url", "amqp://127.0.0.1:1/", "--listen", "127.0.0.1:0", "--node", "one", "--history", address)
		if status != 1 || strings.Count(complaint, "\n") != 1 || !strings.Contains(complaint, says) {
			t.Errorf("status %d and %q, want 1 and one sentence: %s", status, complaint, says)
		}
	}
}

// TestNodesOfSeveralClusters has two Umbels share the histories of a cluster with a name.
func TestNodesOfSeveralClusters(t *testing.T) {
	t.Parallel()
	broker, history := testenv.VirtualHost(t), testpostgres.Database(t)
	nodes := make(map[string]*dashboard)
	for _, name := range []string{"one", "two"} {
		nodes[name] = start(t, nil, "serve", "--cluster", "shop="+broker, "--history", history, "--node", name)
	}
	for _, d := range nodes {
		eventually(t, timeout, func() error {
			status, body, err := fetch(t.Context(), d.url+"clusters/shop/readyz")
			switch {
			case err != nil:
				return err
			case status != http.StatusOK || strings.Count(string(body), " leads ") != 1 || strings.Count(string(body), " follows ") != 1:
				return errors.New("/readyz says " + string(body))
			}
			return nil
		})
	}
	newBus(t, broker).publishAll(t, [][]byte{[]byte(`{"type": "task-received", "uuid": "x", "hostname": "w1", "clock": 1, "timestamp": 1790000000}`)})
	for name, d := range nodes {
		eventually(t, timeout, func() error {
			status, _, err := fetch(t.Context(), d.url+"clusters/shop/api/v1/tasks/x")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("node %s answers %d", name, status)
			}
			return err
		})
	}
}
