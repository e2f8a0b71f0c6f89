"""Reads settings of apps as lines of Python, and writes what the Celery command umbel makes of each as JSON."""

import json
import ssl  # noqa: F401, for the lines
import sys

import celery
from umbel._settings import Unsupported, environment

for line in sys.stdin:
    settings = eval(line)
    args, environ = settings.pop("_args", []), settings.pop("_environ", [])
    app = celery.Celery("proj", set_as_current=False)
    app.conf.update(settings)
    try:
        found = environment(app, args, environ)
        print(json.dumps({"variables": found.variables, "warnings": found.warnings}))
    except Unsupported as error:
        print(json.dumps({"unsupported": str(error)}))
