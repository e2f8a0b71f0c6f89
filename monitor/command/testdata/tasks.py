"""A Celery app to act on. The environment tells its broker, its result backend and the prefix of keys on Redis."""
import json
import os
import time
from datetime import datetime, timezone
from decimal import Decimal

from celery import Celery, chain, group
from kombu import Exchange, Queue

PREFIX = os.environ.get("ACTION_PREFIX", "")
RABBITMQ = os.environ["ACTION_BROKER"].startswith("amqp")

app = Celery("tasks", broker=os.environ["ACTION_BROKER"], backend=os.environ["ACTION_BACKEND"])
app.conf.update(
    broker_connection_retry=False,  # a worker that outlives its test ends with the broker
    broker_connection_retry_on_startup=True,
    broker_transport_options={} if RABBITMQ else {"global_keyprefix": PREFIX},
    result_backend_transport_options={"global_keyprefix": PREFIX},
    result_expires=600,
    result_extended=True,
    task_send_sent_event=True,
    worker_prefetch_multiplier=1,
    task_queues=[
        Queue("celery"),
        Queue("other"),
        Queue("parked"),
        Queue("urgent", Exchange("urgent"), routing_key="urgent", max_priority=10 if RABBITMQ else None),
    ],
)


@app.task
def echo(*args, **kwargs):
    """Returns what it was called with, in a form that is the same for the same arguments."""
    return json.dumps([args, kwargs], sort_keys=True, default=str)


@app.task(bind=True)
def request(self):
    """Returns what came with its message."""
    r = self.request
    return json.dumps([
        r.delivery_info["priority"], r.timelimit, r.shadow, [link["task"] for link in r.errbacks or []], getattr(r, "mine", None),
    ])


@app.task
def hold(path):
    """Runs until the file exists."""
    while not os.path.exists(path):
        time.sleep(0.02)
    return "released"


@app.task
def boom(text):
    raise ValueError(text)


if __name__ == "__main__":
    last = chain(echo.s("first"), echo.s("second"), echo.s("third")).apply_async()
    members = group(echo.s("left"), echo.s("right")).apply_async()
    parked = echo.apply_async(
        (1, "ü", [2.5, None], {"a": Decimal("1.10")}), {"when": datetime(2026, 11, 21, tzinfo=timezone.utc)},
        queue="parked", countdown=60, expires=600, priority=3, time_limit=20, soft_time_limit=10.5, shadow="shown",
        link=echo.s("then"), headers={"mine": "x"},
    )
    print(json.dumps({
        "chain": [last.parent.parent.id, last.parent.id, last.id],
        "group": [child.id for child in members.children],
        "parked": parked.id,
    }))
