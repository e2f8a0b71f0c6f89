# shellcheck shell=bash
# Where the programs are that the tests need. Sourced by deps and services; each function prints a
# path, or fails.

# The directory with rabbitmq-server. Debian's commands on PATH are wrappers that
# insist on the system's own node, so the scripts behind them come first. UMBEL_RABBITMQ names
# another such directory.
find_rabbitmq() {
	local dir dirs=(/usr/lib/rabbitmq/bin "$(dirname "$(command -v rabbitmq-server || echo /nowhere/x)")")
	if [[ -n ${UMBEL_RABBITMQ:-} ]]; then dirs=("$UMBEL_RABBITMQ"); fi
	for dir in "${dirs[@]}"; do
		if [[ -x $dir/rabbitmq-server ]]; then
			echo "$dir"
			return
		fi
	done
	return 1
}

find_redis() { command -v redis-server; }

# The directory with initdb and postgres, which are on no PATH in Debian.
find_postgres() {
	local dir
	for dir in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -Vr) "$(dirname "$(command -v postgres || echo /nowhere/x)")"; do
		if [[ -x $dir/initdb && -x $dir/postgres ]]; then
			echo "$dir"
			return
		fi
	done
	return 1
}

# The library that gives a process a clock of its own, for LD_PRELOAD.
find_faketime() {
	local library
	for library in /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1; do
		if [[ -r $library ]]; then
			echo "$library"
			return
		fi
	done
	return 1
}

# The headless shell draws no window, which saves a third of a test's processor time. Debian's command on PATH is a script: to
# kill it leaves the browser running.
find_chromium() {
	local shell=/usr/lib/chromium/chromium-headless-shell
	if [[ -x $shell ]]; then
		echo "$shell"
		return
	fi
	command -v chromium || command -v chromium-browser || command -v google-chrome
}

# The script of axe-core, which looks for what keeps people from using a page.
find_axe() {
	local script=$PWD/.services/axe/node_modules/axe-core/axe.min.js
	[[ -r $script ]] && echo "$script"
}

# The compiler of TypeScript, which checks the scripts of the pages.
find_tsc() {
	local tsc=$PWD/.services/typescript/node_modules/.bin/tsc
	command -v node >/dev/null && [[ -x $tsc ]] && echo "$tsc"
}

# The program that tests the API against its OpenAPI document.
find_schemathesis() {
	local program=$PWD/.services/schemathesis/bin/schemathesis
	[[ -x $program ]] && echo "$program"
}

# The type checker of the Python package.
find_mypy() {
	local program=$PWD/.services/mypy/bin/mypy
	[[ -x $program ]] && echo "$program"
}

# What checks the files of deploy/.
find_deployment() {
	local programs=$PWD/.services/deployment/bin
	[[ -x $programs/check-jsonschema && -x $programs/kubernetes-validate ]] && echo "$programs"
}

# Celery's interpreter, in a virtual environment of the project's own.
find_celery_python() {
	local python=$PWD/.services/venv/bin/python
	[[ -x $python ]] && "$python" -c '
import celery, gevent, msgpack, psycopg2, redis, sqlalchemy, sys, yaml
sys.exit(not (5, 6) <= celery.VERSION[:2] < (6, 0))' 2>/dev/null && echo "$python"
}

# The interpreter of the Django project of the tests, in a virtual environment of its own.
find_django_python() {
	local python=$PWD/.services/outbox/bin/python
	[[ -x $python ]] && "$python" -c '
import celery, django, django_celery_beat, django_celery_results, psycopg, redis, sys
from django_celery_outbox import __version__
sys.exit(__version__ != "0.4.3" or django_celery_beat.__version__ != "2.8.1")' 2>/dev/null && echo "$python"
}

# Prometheus comes with promtool, which checks and tests rules.
find_prometheus() { command -v promtool >/dev/null && command -v prometheus; }

# The interpreter of Flower, in a virtual environment of its own.
find_flower_python() {
	local python=$PWD/.services/flower/bin/python
	[[ -x $python ]] && "$python" -c '
import celery, flower, redis, sys
sys.exit(flower.__version__ != "2.2.0")' 2>/dev/null && echo "$python"
}
