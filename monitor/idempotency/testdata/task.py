"""Calls tasks of the class RunOnce and prints their results as lines of JSON: task.py URL NAME."""

import json
import sys

import celery
import redis
import runonce

url, name = sys.argv[1:]
app = celery.Celery(task_always_eager=True)


class Once(runonce.RunOnce):
    pass


Once.url = url


@app.task(base=Once, bind=True, name=name)
def charge(self, order_id, fail=False):
    if fail:
        raise ValueError("card declined")
    key = f"lock:{runonce.fingerprint(name, [], {'order_id': order_id})}"
    value = redis.Redis.from_url(url).get(key)
    return {"id": self.request.id, "value": value.decode() if value else None, "again": charge(order_id=order_id)}


def call(**kwargs):
    result = charge.apply(kwargs=kwargs, task_id="the-id")
    print(json.dumps({"state": result.state, "result": result.result if result.successful() else None}))


call(order_id=1)
call(order_id=1)
call(order_id=2, fail=True)
call(order_id=2, fail=True)
