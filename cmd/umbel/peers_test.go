package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// TestOneOfSeveralUmbelsAsks has Umbels share a broker: one has workers send events; when it is killed, another one does within the lease, and a third joins.
func TestOneOfSeveralUmbelsAsks(t *testing.T) {
	t.Parallel()
	for name, newBroker := range brokers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			takeOver(t, newBroker(t))
		})
	}
}

// peers is what the API says of them.
type peers struct {
	State string `json:"state"`
	Asks  bool   `json:"asks"`
	Items []struct {
		PID    int  `json:"pid"`
		Leads  bool `json:"leads"`
		Silent bool `json:"silent"`
	} `json:"items"`
}

func (d *dashboard) peers(t *testing.T) peers {
	t.Helper()
	status, body := d.fetch(t, "api/v1/peers")
	var p peers
	if err := json.Unmarshal(body, &p); err != nil || status != http.StatusOK {
		t.Fatalf("peers answered %d, %v: %s", status, err, body)
	}
	return p
}

// part waits until the Umbel has a part among n others.
func (d *dashboard) part(t *testing.T, state string, n int) peers {
	t.Helper()
	var p peers
	eventually(t, timeout, func() error {
		if p = d.peers(t); p.State != state || len(p.Items) != n {
			return fmt.Errorf("peers are %+v, want state %s and %d others", p, state, n)
		}
		return nil
	})
	return p
}

func takeOver(t *testing.T, broker string) {
	t.Helper()
	c := newCluster(t, broker)
	first := start(t, c.env, "serve", "--data-dir", t.TempDir())
	first.part(t, "leads", 0)
	second := start(t, c.env, "serve", "--data-dir", t.TempDir())
	if p := second.part(t, "follows", 1); p.Asks {
		t.Errorf("the second is %+v, want it not to ask", p)
	}
	one := c.work(t, "one@test", "one", "-P", "solo")
	one.await(t, "Events of group {task} enabled by remote.")

	killed := time.Now()
	first.end(t, syscall.SIGKILL)
	eventually(t, timeout, func() error {
		if p := second.peers(t); !p.Asks || len(p.Items) != 1 || !p.Items[0].Silent {
			return fmt.Errorf("peers are %+v, want the second to ask since the other is silent", p)
		}
		return nil
	})
	t.Logf("the second asks %v after the first was killed", time.Since(killed))
	two := c.work(t, "two@test", "two", "-P", "solo")
	two.await(t, "Events of group {task} enabled by remote.")

	third := start(t, c.env, "serve", "--data-dir", t.TempDir())
	second.part(t, "leads", 1) // the killed one is forgotten
	eventually(t, timeout, func() error {
		if p := third.part(t, "follows", 1); !p.Items[0].Leads {
			return fmt.Errorf("the third knows %+v, want it to know that the second leads", p)
		}
		return nil
	})
	if status := second.end(t, syscall.SIGTERM); status != 0 {
		t.Errorf("the second ended with status %d, want 0", status)
	}
	third.part(t, "leads", 0)
}
