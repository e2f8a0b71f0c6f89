"""A Celery app whose task does its work once for each id, however often it is delivered. Its broker comes from the
environment, CELERY_BROKER_URL, and COUNTS_URL is the Redis that counts."""
import os

import redis
from celery import Celery

app = Celery("once")
app.conf.update(
    task_ignore_result=True,
    broker_connection_retry=False,  # a worker that outlives its test ends with the broker
    broker_connection_retry_on_startup=True,
)
counts = redis.Redis.from_url(os.environ["COUNTS_URL"])


@app.task(bind=True)
def once(self, kind):
    counts.hincrby(f"runs:{kind}", self.request.id, 1)
    if counts.set(f"done:{kind}:{self.request.id}", 1, nx=True):
        counts.hincrby(f"effects:{kind}", self.request.id, 1)
