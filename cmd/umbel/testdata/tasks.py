"""A Celery app that does a little of everything. Its broker and result backend come from the
environment, CELERY_BROKER_URL and CELERY_RESULT_BACKEND."""
import hashlib
import json
import os
import time

import redis
from celery import Celery, chain, chord, group
from celery.exceptions import Ignore

from umbel.celery import IdempotentTask

app = Celery("tasks")
app.conf.update(
    task_send_sent_event=True,
    broker_connection_retry=False,  # a worker that outlives its test ends with the broker
    broker_connection_retry_on_startup=True,
    worker_prefetch_multiplier=1,
)
if "SERIALIZER" in os.environ:
    serializer = os.environ["SERIALIZER"]
    app.conf.update(
        event_serializer=serializer, task_serializer=serializer, result_serializer=serializer, accept_content=["json", serializer],
        task_create_missing_queues=True,
    )
if "VISIBILITY_TIMEOUT" in os.environ:  # of Redis, which is looked at each second
    app.conf.broker_transport_options = {
        "visibility_timeout": int(os.environ["VISIBILITY_TIMEOUT"]),
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
    }


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def boom(text):
    raise ValueError(text)


@app.task(bind=True, max_retries=5)
def flaky(self, failures, countdown):
    """Fails so many times, each on another attempt, with so many seconds between them."""
    if self.request.retries < failures:
        try:
            raise OSError(f"attempt {self.request.retries} failed")
        except OSError as error:
            raise self.retry(exc=error, countdown=countdown)
    return self.request.retries


@app.task
def hold(path):
    """Runs until the file exists."""
    while not os.path.exists(path):
        time.sleep(0.02)
    return "released"


@app.task
def hold_by_pid(path):
    """Writes down which process runs it, whole."""
    with open(path + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(path + ".new", path + ".pid")
    return hold(path)


@app.task
def hold_once(path, ttl=600):
    """Runs until the file exists, once for each call, by a lock in the broker, which is Redis."""
    call = {"path": path} if ttl == 600 else {"path": path, "ttl": ttl}
    text = json.dumps(call, sort_keys=True, separators=(",", ":"))
    key = "lock:celery:exec:tasks.hold_once:" + hashlib.sha256(text.encode()).hexdigest()
    db = redis.Redis.from_url(app.conf.broker_url, decode_responses=True)
    if not db.set(key, "processing", nx=True, ex=ttl):
        completed = db.get(key) == "completed"
        return {"status": "skipped", "reason": "already_completed" if completed else "concurrent_execution"}
    try:
        result = hold(path)
    except BaseException:
        db.delete(key)
        raise
    db.set(key, "completed", ex=86_400)
    return result


@app.task(base=IdempotentTask, bind=True, acks_late=True, lock_ttl=6)
def hold_idempotently(self, path):
    """Runs until the file exists, once for each call."""
    hold(path)
    self.check_lock()
    return "held"


@app.task
def leave():
    raise SystemExit(3)


@app.task
def ignore():
    raise Ignore


@app.task(send_events=False)
def add_unseen(x, y):
    return x + y


@app.task(bind=True)
def become_sum(self, x, y):
    raise self.replace(add.s(x, y))


@app.task(acks_late=True)
def hold_late(path):
    return hold(path)


@app.task(bind=True)
def progress(self, path):
    self.send_event("task-progress", done=1, of=2)
    return hold(path)


@app.task
def fan_out(n):
    """Publishes a group from inside a worker."""
    result = group(add.s(i, i) for i in range(n)).apply_async()
    return [child.id for child in result.children]


def start_chain():
    """Returns the ids of three tasks, of which each leads to the next."""
    last = chain(add.s(1, 1), add.s(2), add.s(3)).apply_async()
    return [last.parent.parent.id, last.parent.id, last.id]


def start_chord():
    """Returns the ids of a header of two tasks, and of the body that takes their results."""
    body = chord([add.s(1, 1), add.s(2, 2)])(total.s())
    return [child.id for child in body.parent.children] + [body.id]
