package testpostgres

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/umbelhq/umbel/internal/testenv"
)

// Server is a PostgreSQL of a test's own, which it may stop and start. It ends with the test.
type Server struct {
	URL string

	t       testing.TB
	bin     string // directory of its programs
	data    string
	port    string
	as      *syscall.Credential // nil for the user of the test
	running *exec.Cmd
}

// NewServer makes one of the programs of that behind testenv.Postgres. It does not run yet.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, bin: programs(t)}
	dir, err := os.MkdirTemp("", "umbel-postgres-") //nolint:usetesting // other users cannot enter those of the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		_ = os.RemoveAll(dir)
	})
	if os.Geteuid() == 0 { // it refuses to run as root
		s.as = s.owner(dir)
	}
	s.data = filepath.Join(dir, "data")
	if out, err := s.command("initdb", "--pgdata", s.data, "--username", "umbel", "--auth", "trust", "--encoding", "UTF8",
		"--no-locale", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, s.port, _ = net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	s.URL = (&url.URL{Scheme: "postgres", User: url.User("umbel"), Host: l.Addr().String(), Path: "/postgres"}).String()
	return s
}

// programs returns the directory with those of PostgreSQL.
func programs(t testing.TB) (dir string) {
	t.Helper()
	db, err := sql.Open("pgx", testenv.Postgres(t))
	if err == nil {
		err = db.QueryRowContext(t.Context(), `SELECT setting FROM pg_config WHERE name = 'BINDIR'`).Scan(&dir)
		_ = db.Close()
	}
	if err != nil {
		t.Fatalf("find the programs of PostgreSQL: %v", err)
	}
	return dir
}

// owner gives a directory to the user postgres.
func (s *Server) owner(dir string) *syscall.Credential {
	s.t.Helper()
	u, err := user.Lookup("postgres")
	if err != nil {
		s.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		s.t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), filepath.Join(s.bin, name), args...) //nolint:gosec // a program of PostgreSQL
	cmd.Dir = filepath.Dir(s.data)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Setpgid: true}
	return cmd
}

// Start runs it, with variables of its environment, until it answers.
func (s *Server) Start(env ...string) {
	s.t.Helper()
	cmd := s.command("postgres", "-D", s.data, "-k", "", "-h", "127.0.0.1", "-p", s.port, "-F")
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.running = cmd
	db, err := sql.Open("pgx", s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // nothing is lost
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), 3*time.Minute)
	defer cancel()
	for db.PingContext(ctx) != nil {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			s.t.Fatal("PostgreSQL does not start")
		}
	}
}

// Stop ends it at once, as a crash does.
func (s *Server) Stop() {
	if s.running == nil {
		return
	}
	_ = s.running.Process.Signal(syscall.SIGQUIT)
	_ = s.running.Wait()
	s.running = nil
}

// Schema returns the URL of an empty schema of a server that runs.
func (s *Server) Schema(name string) string {
	s.t.Helper()
	Execute(s.t, s.URL, "CREATE SCHEMA "+name)
	return fmt.Sprintf("%s?search_path=%s", s.URL, name)
}
