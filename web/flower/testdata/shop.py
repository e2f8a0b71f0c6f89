"""A Celery app whose tasks end in every way, for Flower and Umbel to watch at once."""
import os
import time

from celery import Celery
from celery.contrib.abortable import AbortableTask

app = Celery("shop")
app.conf.update(
    task_send_sent_event=True,
    worker_send_task_events=True,
    broker_connection_retry=False,  # a worker that outlives its test ends with the broker
    broker_connection_retry_on_startup=True,
    worker_pool_restarts=True,
    timezone="UTC",
    api_token="hidden-from-everyone",
)


@app.task
def add(x, y=0, **options):
    return x + y


@app.task
def echo(*args, **kwargs):
    return [args, kwargs]


@app.task
def fail(text):
    raise ValueError(text)


@app.task(bind=True, max_retries=3)
def flaky(self):
    if self.request.retries < 1:
        # On a busy machine a worker tells of a retry after the next run has ended, if that is soon. Flower then shows RETRY.
        raise self.retry(exc=OSError("not yet"), countdown=2)
    return "at last"


@app.task(bind=True)
def progress(self):
    self.send_event("task-progress", percent=50)
    self.update_state(state="PROGRESS")
    return "done"


@app.task(bind=True)
def parent(self):
    add.apply_async((1, 1), task_id="child")


@app.task
def sleep(seconds):
    time.sleep(seconds)
    return seconds


@app.task(bind=True, base=AbortableTask)
def abortable(self, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end and not self.is_aborted():
        time.sleep(0.05)
    return self.is_aborted()
