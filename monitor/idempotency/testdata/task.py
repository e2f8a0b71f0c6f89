"""Calls an IdempotentTask and prints their results as lines of JSON: task.py URL NAME."""

import json
import sys

import celery
import redis
from umbel.celery import IdempotentTask

url, name = sys.argv[1:]
app = celery.Celery(task_always_eager=True, idempotency_redis_url=url)


@app.task(base=IdempotentTask, bind=True, name=name)
def charge(self, order_id, fail=False):
    if fail:
        raise ValueError("card declined")
    value = redis.Redis.from_url(url).get("lock:" + self.fingerprint(kwargs={"order_id": order_id}))
    return {"id": self.request.id, "value": value.decode() if value else None, "again": charge(order_id=order_id)}


def call(**kwargs):
    result = charge.apply(kwargs=kwargs, task_id="the-id")
    print(json.dumps({"state": result.state, "result": result.result if result.successful() else None}))


call(order_id=1)
call(order_id=1)
call(order_id=2, fail=True)
call(order_id=2, fail=True)
