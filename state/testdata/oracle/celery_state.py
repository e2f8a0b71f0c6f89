#!/usr/bin/env python3
"""What Celery itself makes of a stream of events: the oracle for the celery rules.

Standard input has one raw event body per line, an object or an array of objects, in arrival order.
Each goes through celery.events.receiver.EventReceiver and celery.events.state.State, Celery's own
code, into a fresh state with a fresh clock. Standard output gets one line of JSON:

    {"tasks": {uuid: {field: value}}, "workers": {hostname: {field: value}}}

With --many, a blank line ends a history, and each history gives a line of its own, flushed at once,
so that one process serves thousands.

Of a task come all fields that Celery lists: worker is a hostname, root and parent are the uuids of
the tasks if they are in the state, children are sorted uuids; extra has whatever else the events
left on it. NaN and the infinities, which JSON lacks, come as "NaN", "Infinity" and "-Infinity", and
what only Python knows (kombu writes dates and the like as __type__ objects) as its str().
"""
import argparse
import json
import sys
from weakref import WeakSet

from celery import Celery
from celery.events.receiver import EventReceiver
from celery.events.state import State, Task
from kombu.exceptions import DecodeError
from kombu.serialization import loads

# Room for everything in a history: eviction is not under test.
LIMIT = 1 << 40

WORKER_FIELDS = ("pid", "freq", "active", "processed", "loadavg",
                 "sw_ident", "sw_ver", "sw_sys", "clock")

# Attributes of a task that are Celery's own and come from no event.
INTERNAL = {"cluster_state", "_serializer_handlers"}


class Receiver(EventReceiver):
    """Celery's receiver, with the time taken from the events."""

    def event_from_message(self, body):
        """Does what Celery does on receipt, except that it leaves the timestamp alone.

        Celery shifts timestamps by the sender's distance in time zones, though they are UTC
        already, so its result would depend on where the test runs.
        """
        return super().event_from_message(body, localize=False, now=lambda: received(body))


def received(event):
    """Returns the time of receipt: the event's own timestamp.

    The wall clock would make two runs differ. A timestamp that is no number must not get into the
    heartbeats, where Celery would have its own clock's time, so any constant stands in for it.
    """
    timestamp = event.get("timestamp")
    return timestamp if isinstance(timestamp, (int, float)) else 1.0


class Oracle:
    """Folds one history after the other."""

    def __init__(self):
        app = Celery("oracle", broker="memory://", set_as_current=False)
        self.receiver = Receiver(app.connection_for_read().default_channel, app=app)

    def fold(self, lines):
        state = State(max_workers_in_memory=LIMIT, max_tasks_in_memory=LIMIT)
        self.receiver.clock.value = 0
        self.receiver.handlers = {"*": state.event}
        for line in lines:
            for event in events(line):
                # Upstream, an event that raises takes the rest of its array with it and ends
                # the capture. Here it is alone in being lost.
                try:
                    self.receiver.process(*self.receiver.event_from_message(event))
                except Exception:
                    continue
        return {
            "tasks": {uuid: task_fields(task) for uuid, task in state.tasks.items()},
            "workers": {hostname: {f: getattr(worker, f) for f in WORKER_FIELDS}
                        for hostname, worker in state.workers.items()},
        }


def events(line):
    """Returns the events of a body as Kombu decodes it, none if it cannot."""
    try:
        body = loads(line, "application/json", "utf-8", accept=["application/json"])
    except DecodeError:
        return []
    return body if isinstance(body, list) else [body]


def task_fields(task):
    fields = {f: getattr(task, f, None) for f in Task._fields if f not in ("root", "parent")}
    fields["root"] = relative(task, "root")
    fields["parent"] = relative(task, "parent")
    fields["worker"] = getattr(task.worker, "hostname", task.worker)
    if isinstance(task.children, WeakSet):  # an event may have overwritten it
        fields["children"] = sorted((child.uuid for child in task.children), key=str)
    fields["extra"] = {k: v for k, v in vars(task).items() if k not in fields and k not in INTERNAL}
    return fields


def relative(task, name):
    try:
        return getattr(getattr(task, name), "uuid", None)
    except (AttributeError, TypeError):  # looked up by an id of the wrong type
        return None


def encode(document):
    """Returns the document as one line of JSON."""
    text = json.dumps(document, default=str)  # with bare NaN, which the decoder hands to str
    return json.dumps(json.loads(text, parse_constant=str))


def histories(lines):
    """Yields the histories that blank lines end."""
    history = []
    for line in lines:
        if line.strip():
            history.append(line)
        else:
            yield history
            history = []
    if history:
        yield history


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--many", action="store_true", help="a blank line ends a history")
    lines = sys.stdin.buffer
    many = parser.parse_args().many
    oracle = Oracle()
    for history in histories(lines) if many else [[line for line in lines if line.strip()]]:
        print(encode(oracle.fold(history)), flush=True)


if __name__ == "__main__":
    main()
