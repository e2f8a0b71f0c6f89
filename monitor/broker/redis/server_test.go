package redis_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
)

// server is a Redis of the test's own, for what the shared one must be spared.
type server struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// runServer starts redis-server with a configuration, and returns when it accepts connections at an address.
func runServer(t *testing.T, network, address, config string, args ...string) *server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "redis.conf")
	config += "\nsave \"\"\nappendonly no\ndir " + filepath.Dir(file) + "\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatalf("write configuration: %v", err)
	}
	s := &server{cmd: exec.Command(testenv.RedisServer(t), append([]string{file}, args...)...), exited: make(chan struct{})}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(s.kill)
	eventually(t, "redis-server to accept connections", func() bool {
		var d net.Dialer
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		c, err := d.DialContext(ctx, network, address)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	return s
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// eventually polls until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(timeout)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// told are the ports that freePort has returned: the kernel may give one again before it is used.
var told sync.Map

// freePort returns a port that nobody listens on, to each test another.
func freePort(t *testing.T) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatalf("listen: %v", err)
		}
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		_ = l.Close()
		if _, again := told.LoadOrStore(port, true); !again {
			return port
		}
	}
}

// fake is a server that knows enough of the protocol to take a subscriber, and calls then with its connection.
func fake(t *testing.T, then func(net.Conn)) string {
	t.Helper()
	answers := map[string]string{
		"HELLO": "-ERR unknown command 'HELLO'\r\n", "CLIENT": "+OK\r\n", "PING": "+PONG\r\n", "SELECT": "+OK\r\n",
	}
	return serve(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			words, err := command(in)
			if err != nil {
				return
			}
			name := strings.ToUpper(words[0])
			if name == "PSUBSCRIBE" {
				for i, pattern := range words[1:] {
					_, _ = fmt.Fprintf(c, "*3\r\n$10\r\npsubscribe\r\n$%d\r\n%s\r\n:%d\r\n", len(pattern), pattern, i+1)
				}
				then(c)
				continue
			}
			if _, err := c.Write([]byte(answers[name])); err != nil {
				return
			}
		}
	})
}

// command reads what a client sends.
func command(in *bufio.Reader) (words []string, err error) {
	var n, size int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	for range n {
		if _, err := fmt.Fscanf(in, "$%d\r\n", &size); err != nil {
			return nil, err
		}
		word := make([]byte, size+2)
		for read := 0; read < len(word); {
			k, err := in.Read(word[read:])
			if err != nil {
				return nil, err
			}
			read += k
		}
		words = append(words, string(word[:size]))
	}
	return words, nil
}

// serve runs a server that calls talk with every connection, and returns its address.
func serve(t *testing.T, talk func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	var mu sync.Mutex
	var conns []net.Conn
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			wg.Go(func() {
				talk(c)
				_ = c.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}
