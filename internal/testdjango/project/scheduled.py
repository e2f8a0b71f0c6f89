"""A Celery application without an outbox, for beat."""

import os

import django
from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

app = Celery("scheduled", broker=os.environ["SHOP_BROKER"])
app.conf.update(task_send_sent_event=True, worker_hijack_root_logger=False, beat_max_loop_interval=1, result_expires=None)


@app.task(name="shop.sync")
def sync():
    return None
