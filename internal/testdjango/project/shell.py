"""Migrates the database and prints a line. Then runs what lines of JSON on standard input say, {"code": …, "args": …}, and
prints the value of result, or an error."""

import json
import sys
import traceback

import shop
from django.core.management import call_command
from django.db import transaction
from django_celery_outbox.models import CeleryOutbox, CeleryOutboxDeadLetter

call_command("migrate", verbosity=0, run_syncdb=True, skip_checks=True)
print(flush=True)
for line in sys.stdin:
    request = json.loads(line)
    scope = {
        "args": request["args"], "app": shop.app, "transaction": transaction, "result": None,
        "CeleryOutbox": CeleryOutbox, "CeleryOutboxDeadLetter": CeleryOutboxDeadLetter,
    }
    try:
        exec(request["code"], scope)
        reply = {"result": scope["result"]}
    except Exception:
        reply = {"error": traceback.format_exc()}
    print(json.dumps(reply, default=str), flush=True)
