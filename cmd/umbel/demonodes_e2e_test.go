package main_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/umbelhq/umbel/internal/testpostgres"
)

// TestDemoOfNodesEndToEnd kills the leader among the processes of a demo. Another one must go on, and the killed one come back; all
// end with the process that has started them, however that ends.
func TestDemoOfNodesEndToEnd(t *testing.T) {
	t.Parallel()
	p := spawn(t, command(nil, umbel, "demo", "--nodes", "3", "--rate", "20", "--history", testpostgres.Schema(t), "--listen", "127.0.0.1:0", "--log-format", "json"))
	nodes := func() map[int]string {
		urls := map[int]string{}
		text, _ := p.lines.read()
		for line := range strings.Lines(text) {
			var entry struct {
				Message string `json:"msg"`
				PID     int    `json:"pid"`
				URL     string `json:"url"`
			}
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "dashboard ready" {
				urls[entry.PID] = entry.URL
			}
		}
		return urls
	}
	// tasks returns how many each process shows, and which one leads.
	tasks := func(of map[int]string) (counts []int, leader int, err error) {
		for pid, url := range of {
			var overview struct{ Counts struct{ Tasks int } }
			status, body, err := fetch(t.Context(), url+"api/v1/overview")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("%s answered %d", url, status)
			}
			if err == nil {
				err = json.Unmarshal(body, &overview)
			}
			if err != nil {
				return nil, 0, err
			}
			counts = append(counts, overview.Counts.Tasks)
			_, page, err := fetch(t.Context(), url+"settings")
			if err != nil {
				return nil, 0, err
			}
			if row, _, _ := strings.Cut(string(page), "<strong>leads</strong>"); len(row) < len(page) && strings.Contains(row[strings.LastIndex(row, "<tr>"):], "(this one)") {
				leader = pid
			}
		}
		if leader == 0 {
			err = errors.New("nobody leads")
		}
		return counts, leader, err
	}
	var first, leader int
	eventually(t, timeout, func() error {
		if n := len(nodes()); n != 3 {
			return fmt.Errorf("%d processes show a dashboard, want 3", n)
		}
		counts, now, err := tasks(nodes())
		if err == nil && (counts[0] < 100 || counts[1] < 100 || counts[2] < 100) {
			err = fmt.Errorf("they show %v tasks, want 100 at least", counts)
		}
		if err == nil {
			first, leader = counts[0], now
		}
		return err
	})
	if err := syscall.Kill(leader, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, timeout, func() error {
		rest := nodes()
		delete(rest, leader)
		if len(rest) != 3 {
			return errors.New("the one that was killed is not back")
		}
		counts, now, err := tasks(rest)
		if err == nil && (now == leader || counts[0] <= first || counts[1] <= first || counts[2] <= first) {
			err = fmt.Errorf("they show %v tasks, want more than %d", counts, first)
		}
		return err
	})
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, timeout, func() error {
		for pid, url := range nodes() {
			if _, _, err := fetch(t.Context(), url+"healthz"); err == nil {
				return fmt.Errorf("process %d goes on alone", pid)
			}
		}
		return nil
	})
}

func TestDemoOfNodesNeedsPostgreSQL(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "umbel: --nodes: several nodes share a history in PostgreSQL, since a directory cannot be shared: add --history postgres://user:password@host/database\n"},
		{[]string{"--history", "postgres://127.0.0.1/x", "--listen", "unix:/tmp/x"}, "umbel: --nodes: --listen unix:/tmp/x has no port that those of further nodes could follow: write host:port\n"},
	} {
		if status, _, said := once(t, nil, nil, append([]string{"demo", "--nodes", "3"}, test.args...)...); status != 2 || said != test.want {
			t.Errorf("%v: status %d, %q, want 2, %q", test.args, status, said, test.want)
		}
	}
}
