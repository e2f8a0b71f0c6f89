"""Makes calls to Celery: reads one a line, as JSON, and writes the result of each as a line of JSON."""
import json
import sys

import tasks


def perform(call, args=(), kwargs=None, options=None):
    if call == "revoke":
        tasks.app.control.revoke(*args, **kwargs or {})
        return []
    if call == "active":  # of so many workers, all that there are
        answers = tasks.app.control.inspect(timeout=10, limit=args[0]).active() or {}
        return [request["id"] for worker in answers.values() for request in worker]
    if call.startswith("start_"):
        return getattr(tasks, call)(*args)
    return [getattr(tasks, call).apply_async(args, kwargs, **options or {}).id]


for line in sys.stdin:
    print(json.dumps(perform(**json.loads(line))), flush=True)
