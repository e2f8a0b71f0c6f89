package database_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/umbelhq/umbel/internal/testenv"
	"github.com/umbelhq/umbel/monitor/results"
	"github.com/umbelhq/umbel/monitor/results/database"
	"github.com/umbelhq/umbel/monitor/results/resultstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, o database.Options) *database.Backend {
	t.Helper()
	b, err := database.New(o)
	if err != nil {
		t.Fatalf("open %s: %v", o.URL, err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func TestSQLite(t *testing.T) {
	t.Parallel()
	url := "db+sqlite:///" + filepath.Join(t.TempDir(), "re sults.db")
	resultstest.Run(t, resultstest.Options{URL: url, Aborts: true}, open(t, database.Options{URL: url}))
}

func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	url := "db+" + strings.Replace(testenv.Postgres(t), "postgresql://", "postgresql+psycopg2://", 1)
	table := fmt.Sprintf("results_%d", time.Now().UnixNano())
	exec(t, "CREATE SCHEMA "+table)
	t.Cleanup(func() { exec(t, "DROP SCHEMA "+table+" CASCADE") })
	settings := fmt.Sprintf("{'database_table_schemas': {'task': '%[1]s', 'group': '%[1]s'}, 'database_table_names': {'task': 'Renamed', 'group': 'g'}}", table)
	b := open(t, database.Options{URL: url, Table: table + ".Renamed"})
	resultstest.Run(t, resultstest.Options{URL: url, Settings: settings, Aborts: true}, b)
}

func exec(t *testing.T, statement string) {
	t.Helper()
	db, err := sql.Open("pgx", testenv.Postgres(t)+"?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestDjango reads the table that django-celery-results makes.
func TestDjango(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "django.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range []string{
		`CREATE TABLE django_celery_results_taskresult (id integer PRIMARY KEY, task_id varchar(255) UNIQUE, task_name varchar(255), task_args text,
			status varchar(50), worker varchar(100), content_type varchar(128), content_encoding varchar(64), result text, date_done datetime, traceback text, meta text)`,
		`INSERT INTO django_celery_results_taskresult (task_id, task_name, task_args, status, worker, content_type, content_encoding, result, date_done)
			VALUES ('a', 'shop.pay', '"(1,)"', 'SUCCESS', 'w1@h', 'application/json', 'utf-8', '{"paid": 5}', '2026-11-21 10:00:00.5'),
			('b', NULL, NULL, 'FAILURE', NULL, 'application/json', 'utf-8', '{"exc_type": "KeyError", "exc_message": ["k"], "exc_module": "builtins"}', NULL),
			('c', NULL, NULL, 'SUCCESS', NULL, 'application/x-python-serialize', 'binary', 'gARLBS4=', NULL)`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, database.Options{URL: "django-db+sqlite:///" + path})
	get := func(id string) results.Result {
		t.Helper()
		r, err := b.Result(t.Context(), id)
		if err != nil {
			t.Fatalf("result %s: %v", id, err)
		}
		return r
	}
	a := get("a")
	done := time.Date(2026, 11, 21, 10, 0, 0, 500_000_000, time.UTC)
	if string(a.Value) != `{"paid": 5}` || a.Name != "shop.pay" || a.Worker != "w1@h" || !a.DoneAt.Equal(done) || !a.NaiveTime {
		t.Errorf("result a = %+v", a)
	}
	if got, want := get("b").Exception, "KeyError: k"; got != want {
		t.Errorf("exception of b = %q, want %q", got, want)
	}
	if got, want := string(get("c").Value), "5"; got != want {
		t.Errorf("value of c = %q, want %q", got, want)
	}
}

// djangoResults has django-celery-results store and read results, in the database that its arguments describe.
const djangoResults = `
import json, sys
from django.conf import settings
settings.configure(DATABASES={"default": json.loads(sys.argv[1])}, INSTALLED_APPS=["django_celery_results"], USE_TZ=True,
                   DEFAULT_AUTO_FIELD="django.db.models.BigAutoField")
import django
django.setup()
from celery import Celery
from celery.contrib.abortable import AbortableAsyncResult
from django.core.management import call_command
app = Celery("tests", set_as_current=True)
app.conf.update(result_backend="django-db", result_extended=True, accept_content=["json", "pickle"])
if sys.argv[2] == "store":
    call_command("migrate", verbosity=0)
    app.backend.store_result("running", {"done": 1}, "PROGRESS")
    app.backend.store_result("done", 5, "SUCCESS")
    app.conf.result_serializer = "pickle"
    pickled = Celery("pickled")
    pickled.conf.update(result_backend="django-db", result_serializer="pickle", accept_content=["pickle"])
    pickled.backend.store_result("pickled", {1}, "PROGRESS")
for task in ("unseen", "running", "done"):
    r = AbortableAsyncResult(task, app=app)
    print(task, r.state, r.is_aborted(), r.result)
`

// TestDjangoAborts marks tasks for the package itself to see.
func TestDjangoAborts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "django.db")
	server, err := url.Parse(testenv.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("results_%d", time.Now().UnixNano())
	exec(t, "CREATE DATABASE "+name+" TEMPLATE template0")
	t.Cleanup(func() { exec(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	postgres := *server
	postgres.Path = "/" + name
	for kind, at := range map[string]struct{ url, settings string }{
		"SQLite": {"django-db+sqlite:///" + path, fmt.Sprintf(`{"ENGINE":"django.db.backends.sqlite3","NAME":%q}`, path)},
		"PostgreSQL": {"django-db+" + postgres.String(), fmt.Sprintf(`{"ENGINE":"django.db.backends.postgresql","NAME":%q,"HOST":%q,"PORT":%q,"USER":%q}`,
			name, server.Hostname(), server.Port(), server.User.Username())},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			django := func(do string) string {
				cmd := osexec.CommandContext(t.Context(), testenv.Django(t), "-c", djangoResults, at.settings, do)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v\n%s", do, err, out)
				}
				return string(out)
			}
			if got, want := django("store"), "unseen PENDING False None\nrunning PROGRESS False {'done': 1}\ndone SUCCESS False 5\n"; got != want {
				t.Fatalf("django-celery-results reads %q before, want %q", got, want)
			}
			b := open(t, database.Options{URL: at.url})
			for range 2 {
				for _, id := range []string{"unseen", "running", "done"} {
					if err := results.Abort(t.Context(), b, id, time.Now()); err != nil {
						t.Fatalf("abort %s: %v", id, err)
					}
				}
			}
			if err := results.Abort(t.Context(), b, "pickled", time.Now()); !errors.Is(err, results.ErrNoAbort) {
				t.Errorf("abort a task with a result in pickle: %v, want %v", err, results.ErrNoAbort)
			}
			if got, want := django("read"), "unseen ABORTED True None\nrunning ABORTED True None\ndone SUCCESS False 5\n"; got != want {
				t.Errorf("django-celery-results reads %q, want %q", got, want)
			}
			if r, err := b.Result(t.Context(), "unseen"); err != nil || r.Status != results.Aborted || time.Since(r.DoneAt).Abs() > time.Hour {
				t.Errorf("result of an aborted task = %+v, %v", r, err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	const password = "s3cret"
	for url, want := range map[string]string{
		"db+mysql://root:" + password + "@h/d":                 "mysql are not supported",
		"redis://:" + password + "@h/0":                        "db+sqlite",
		"db+postgresql:":                                       "scheme",
		"db+sqlite://":                                         "path",
		"db+sqlite:///:memory:":                                "path",
		"db+postgresql://u:" + password + "%zz@h/d":            "malformed",
		"db+postgresql://u:" + password + "@h:port/d":          "",
		"db+postgresql://u:" + password + "@h/d?sslmode=bogus": "",
	} {
		b, err := database.New(database.Options{URL: url})
		if err == nil { // PostgreSQL's driver looks when it connects
			_, err = b.Result(t.Context(), "a")
			if strings.Contains(b.String(), password) {
				t.Errorf("%s: shown as %s", url, b)
			}
			_ = b.Close()
		}
		switch {
		case err == nil:
			t.Errorf("%s: no error", url)
		case !strings.Contains(err.Error(), want):
			t.Errorf("%s: error %v, want one with %q", url, err, want)
		case strings.Contains(err.Error(), password):
			t.Errorf("%s: error %v tells the password", url, err)
		}
	}
}

func TestUnreachableDatabaseKeepsItsPassword(t *testing.T) {
	t.Parallel()
	b := open(t, database.Options{URL: "db+postgresql+psycopg2://u:s3cret@127.0.0.1:1/d?connect_timeout=1&password=s3cret"})
	_, err := b.Result(t.Context(), "a")
	if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(b.String(), "s3cret") {
		t.Errorf("read from %s: error %v, want one without the password", b, err)
	}
}
