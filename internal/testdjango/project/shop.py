"""A Celery application whose tasks go through the outbox of its database."""

import os
import time

import django
from django_celery_outbox import OutboxCelery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

app = OutboxCelery("shop", broker=os.environ["SHOP_BROKER"])
app.conf.update(
    task_send_sent_event=True,
    worker_send_task_events=True,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="shop.charge")
def charge(order, *notes, card=None, **details):
    return f"charged {order}"


@app.task(name="shop.wait")
def wait(seconds):
    time.sleep(seconds)
