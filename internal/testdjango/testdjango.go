// Package testdjango runs a small Django project whose Celery tasks go through django-celery-outbox, on a database of its
// own. No code outside tests may import it.
package testdjango

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx

	"github.com/umbelhq/umbel/internal/testenv"
)

//go:embed project
var project embed.FS

// Project is a Django project whose database has the tables of its outbox, empty. Its tasks are in project/shop.py. It is safe
// for concurrent use.
type Project struct {
	// URL is its database, as --outbox-url takes it.
	URL string

	python, dir string
	env         []string

	mu      sync.Mutex // guards what follows
	calls   *json.Encoder
	results *bufio.Scanner
	errors  *bytes.Buffer
}

// SQLite makes a project on a database in a file. The package's relay refuses to run on SQLite. The broker is only dialled by
// what Relay and Worker start, and may be empty without them.
func SQLite(t testing.TB, broker string) *Project {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shop.db")
	return open(t, broker, "sqlite:///"+path, map[string]any{
		"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": map[string]any{"timeout": 60},
	})
}

// PostgreSQL makes a project on a database of its own, which is dropped when the test ends.
func PostgreSQL(t testing.TB, broker string) *Project {
	t.Helper()
	server, err := url.Parse(testenv.Postgres(t))
	if err != nil {
		t.Fatalf("parse the URL of PostgreSQL: %v", err)
	}
	name := "shop_" + strings.ToLower(rand.Text()[:8])
	admin(t, server.String(), "CREATE DATABASE "+name+" TEMPLATE template0")
	t.Cleanup(func() { admin(t, server.String(), "DROP DATABASE "+name+" WITH (FORCE)") })
	database := *server
	database.Scheme, database.Path, database.RawQuery = "postgres", "/"+name, "sslmode=disable"
	return open(t, broker, database.String(), map[string]any{
		"ENGINE": "django.db.backends.postgresql", "NAME": name,
		"HOST": server.Hostname(), "PORT": server.Port(), "USER": server.User.Username(),
	})
}

// admin executes a statement on a PostgreSQL.
func admin(t testing.TB, server, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", server+"?sslmode=disable")
	if err != nil {
		t.Fatalf("open PostgreSQL: %v", err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

// Role makes a user of the project's PostgreSQL with privileges, such as SELECT ON celery_outbox, and returns the URL of the
// database for that user.
func (p *Project) Role(t testing.TB, privileges string) string {
	t.Helper()
	name := "shop_" + strings.ToLower(rand.Text()[:8])
	database, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	owner := *database
	owner.RawQuery = ""
	admin(t, owner.String(), "CREATE ROLE "+name+" LOGIN")
	t.Cleanup(func() { admin(t, owner.String(), "DROP OWNED BY "+name+"; DROP ROLE "+name) })
	admin(t, owner.String(), "GRANT "+privileges+" TO "+name)
	database.User = url.User(name)
	return database.String()
}

// open writes the files of a project and starts its shell, which migrates its database.
func open(t testing.TB, broker, databaseURL string, database map[string]any) *Project {
	t.Helper()
	settings, err := json.Marshal(database)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Sub(project, "project")
	if err != nil {
		t.Fatal(err)
	}
	p := &Project{URL: databaseURL, python: testenv.Django(t), dir: filepath.Join(t.TempDir(), "project"), errors: new(bytes.Buffer)}
	if err := os.CopyFS(p.dir, files); err != nil {
		t.Fatalf("write the project: %v", err)
	}
	p.env = append(os.Environ(), "SHOP_DATABASE="+string(settings), "SHOP_BROKER="+broker, "PYTHONPATH="+p.dir, "C_FORCE_ROOT=1",
		"PYTHONUNBUFFERED=1", "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
	p.startShell(t)
	return p
}

func (p *Project) startShell(t testing.TB) {
	t.Helper()
	cmd := p.command("shell.py")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.calls, p.results = json.NewEncoder(in), bufio.NewScanner(out)
	p.results.Buffer(nil, 16<<20)
	cmd.Stderr = p.errors
	if err := cmd.Start(); err != nil {
		t.Fatalf("start the shell: %v", err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if !p.results.Scan() {
		t.Fatalf("migrate: the project ended: %v\n%s", p.results.Err(), p.errors)
	}
}

func (p *Project) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.python, args...) //nolint:gosec,noctx // the program that the environment of the tests names; their cleanup ends it
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// Manage is a command of the project's manage.py.
func (p *Project) Manage(args ...string) *exec.Cmd {
	return p.command(append([]string{"manage.py"}, args...)...)
}

// Relay is the package's relay, which looks for rows five times a second unless flags say otherwise.
func (p *Project) Relay(flags ...string) *exec.Cmd {
	return p.Manage(append([]string{"celery_outbox_relay", "--idle-time", "0.2"}, flags...)...)
}

// Worker is a Celery worker of the project that sends events.
func (p *Project) Worker(flags ...string) *exec.Cmd {
	return p.command(append([]string{"-m", "celery", "-A", "shop", "worker", "-l", "INFO", "-E", "-P", "solo"}, flags...)...)
}

// Beat is Celery beat with the schedules of the project's database, whose task is shop.sync.
func (p *Project) Beat() *exec.Cmd {
	return p.command("-m", "celery", "-A", "scheduled", "beat", "-l", "INFO", "--pidfile", "", "--scheduler", "django_celery_beat.schedulers:DatabaseScheduler")
}

// Start starts a command of the project, and kills it when the test ends or kill is called. What it wrote is in the log of
// a test that fails.
func Start(t testing.TB, cmd *exec.Cmd) (kill func()) {
	t.Helper()
	out := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %v: %v", cmd.Args[1:], err)
	}
	kill = sync.OnceFunc(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	t.Cleanup(func() {
		kill()
		if t.Failed() {
			t.Logf("%v wrote:\n%s", cmd.Args[1:], out)
		}
	})
	return kill
}

// Do runs Python code in the project, which finds args, app, transaction, CeleryOutbox and CeleryOutboxDeadLetter, and decodes
// what the code leaves in result unless that is nil.
func (p *Project) Do(t testing.TB, result any, code string, args ...any) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if args == nil {
		args = []any{}
	}
	if err := p.calls.Encode(map[string]any{"code": code, "args": args}); err != nil {
		t.Fatalf("call the project: %v", err)
	}
	if !p.results.Scan() {
		t.Fatalf("the project ended: %v\n%s", p.results.Err(), p.errors)
	}
	var reply struct {
		Result json.RawMessage
		Error  string
	}
	if err := json.Unmarshal(p.results.Bytes(), &reply); err != nil || reply.Error != "" {
		t.Fatalf("the project replied: %v\n%s", err, reply.Error)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(reply.Result, result); err != nil {
		t.Fatalf("decode %s: %v", reply.Result, err)
	}
}

// Enqueue calls a task of the application in a transaction, which writes it into the outbox, and returns its id.
func (p *Project) Enqueue(t testing.TB, name string, args []any, kwargs map[string]any) (id string) {
	t.Helper()
	p.Do(t, &id, `
with transaction.atomic():
    result = app.send_task(args[0], args[1], args[2]).id`, name, args, kwargs)
	return id
}

// Bury makes the row of a task a dead letter, as the relay does, and returns the ID of the dead letter.
func (p *Project) Bury(t testing.TB, task string) (id int64) {
	t.Helper()
	p.Do(t, &id, `
from django_celery_outbox.relay._mutations import RelayMutations
with transaction.atomic():
    rows = list(CeleryOutbox.objects.filter(task_id=args[0]))
    for row in rows:
        row.retries = 5
    RelayMutations(backoff_time=120, max_backoff=3600).move_exceeded_to_dead_letter(rows)
result = CeleryOutboxDeadLetter.objects.filter(task_id=args[0]).latest("id").id`, task)
	return id
}

// Retry performs the admin's action for dead letters: it moves them back into the outbox.
func (p *Project) Retry(t testing.TB, ids ...int64) {
	t.Helper()
	p.Do(t, nil, `
from django.contrib import admin
from django.contrib.auth.models import User
from django.contrib.messages.storage.fallback import FallbackStorage
from django.test import RequestFactory
request = RequestFactory().post("/admin/")
request.user, _ = User.objects.get_or_create(username="admin", is_superuser=True, is_staff=True)
request.session = {}
request._messages = FallbackStorage(request)
admin.site._registry[CeleryOutboxDeadLetter].retry_selected(request, CeleryOutboxDeadLetter.objects.filter(pk__in=args[0]))`, ids)
}
