"""Publishes one task of each kind, under an id that says how it ends."""
from shop import abortable, add, app, echo, fail, flaky, parent, progress, sleep

# The worker begins once all is published: else it may receive a task before the client says that it was sent. Flower shows the
# time of what arrived last, Umbel that of what is causally newest.
app.control.cancel_consumer("celery", reply=True)
add.apply_async((1, 2), {"currency": "EUR"}, task_id="success")
echo.apply_async(("hello world", "a&b<c>\"d'☃", 1.5, None, True), {"label": "some value", "n": 1, "on": True}, task_id="texts")
fail.apply_async(("out of stock",), task_id="failure")
flaky.apply_async(task_id="retried")
progress.apply_async(task_id="custom")
parent.apply_async(task_id="parent")
sleep.apply_async((60,), task_id="scheduled", countdown=3600, expires=7200)
sleep.apply_async((60,), task_id="revoked", countdown=3600)
app.control.revoke("revoked-early")
sleep.apply_async((60,), task_id="revoked-early")
add.apply_async((1, 2), task_id="pending", queue="nobody")
add.apply_async((3, 4), task_id="priority", queue="nobody", priority=9)
app.send_task("shop.unknown", task_id="unregistered", queue="nobody")
app.control.add_consumer("celery", reply=True)
