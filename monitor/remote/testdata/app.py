"""A Celery app whose tasks run until a file exists. How its workers differ comes from the environment."""
import os
import time

from celery import Celery

app = Celery("app")
app.conf.update(
    broker_connection_retry=False,  # a worker that outlives its test ends with the broker
    broker_connection_retry_on_startup=True,
    broker_transport_options={"global_keyprefix": os.environ.get("APP_PREFIX", "")},
    task_serializer=os.environ.get("APP_SERIALIZER", "json"),
    accept_content=["json", "pickle"],
    worker_pool_restarts=True,
    worker_prefetch_multiplier=2,
    my_own_token="hunter2",
)


@app.task(rate_limit="100/s", soft_time_limit=50)
def hold(path, *args, **kwargs):
    while not os.path.exists(path):
        time.sleep(0.02)


@app.task
def idle():
    pass
