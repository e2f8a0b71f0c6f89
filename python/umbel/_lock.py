"""Locks that let a call run once: the keys that Go's package monitor/idempotency writes, and Umbel shows."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from typing import Any, NamedTuple, Optional

import redis

KEY_PREFIX = "lock:"
ALREADY_COMPLETED, CONCURRENT_EXECUTION = "already_completed", "concurrent_execution"

_MAX_TASK_ID = 512  # bytes
_ATTEMPTS = 3  # to take a key that expired as soon as it was found

# Scripts change a key only while it holds what it should. They return 1 if it was changed, or is as it should be. A lock
# that has expired and that nobody took is completed too: the call did run.
_COMPLETE = """local v = redis.call("GET", KEYS[1])
if v == ARGV[1] or v == ARGV[2] or not v then
  redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
  return 1
end
return 0"""
_RELEASE = """local v = redis.call("GET", KEYS[1])
if not v then return 1 end
if v == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0"""
_EXTEND = """if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("PEXPIRE", KEYS[1], ARGV[2]) end
return 0"""

_logger = logging.getLogger(__name__)


class Refusal(NamedTuple):
    """Why a call must not run."""

    reason: str  # ALREADY_COMPLETED or CONCURRENT_EXECUTION
    task_id: str  # of the task that runs or completed the call; empty if the key does not tell
    remaining: float  # seconds until the key expires; infinity if it does not


class Lock:
    """The right to run a call until it expires.

    ttl and completion_ttl are seconds, at least 0.001. Without fenced, values have no token, for programs that expect
    "processing" and "completed" exactly; a worker whose lock has expired can then change the lock of another.
    """

    def __init__(self, client: Any, key: str, task_id: str = "", *, ttl: float, completion_ttl: float, fenced: bool = True) -> None:
        self.key = key
        self._client, self._fenced = client, fenced
        self._ttl_ms, self._completion_ttl_ms = _milliseconds("lock_ttl", ttl), _milliseconds("completion_ttl", completion_ttl)
        owner = ""
        if fenced:
            owner = ":" + secrets.token_hex(16) + (":" + task_id if _is_task_id(task_id) else "")
        self._processing, self._completed = "processing" + owner, "completed" + owner
        self._expires = 0.0  # by time.monotonic, no later than Redis thinks
        self._lost = False
        self._ended = threading.Event()
        self._keeper: Optional[threading.Thread] = None

    @property
    def lost(self) -> bool:
        """Whether the lock has expired, or its key holds something else: another may run the call."""
        return self._lost or time.monotonic() >= self._expires

    def acquire(self) -> Optional[Refusal]:
        """Takes the lock, or says why the call must not run."""
        for _ in range(_ATTEMPTS):
            expires = time.monotonic() + self._ttl_ms / 1000
            taken = self._client.set(self.key, self._processing, nx=True, px=self._ttl_ms)
            found, remaining = (None, 0) if taken else self._client.pipeline(transaction=True).get(self.key).pttl(self.key).execute()
            value = _text(found)
            # A client sends the command again if the reply is lost, and then finds its own value.
            if taken or self._fenced and value == self._processing:
                self._expires = expires
                return None
            if found is not None:
                return _refusal(value, remaining)
        return Refusal(CONCURRENT_EXECUTION, "", 0)

    def extend(self) -> bool:
        """Holds the lock for another TTL. False if it was lost, even if nobody else has taken it: another may have run."""
        if self._fenced:
            return self._run(_EXTEND, self._processing, self._ttl_ms)
        return _text(self._client.get(self.key)) == self._processing and bool(self._client.pexpire(self.key, self._ttl_ms))

    def keep(self) -> None:
        """Extends the lock every third of its TTL, in a thread, until it is completed, released or lost."""
        self._keeper = threading.Thread(target=self._keep, name="umbel-lock", daemon=True)
        self._keeper.start()

    def complete(self) -> bool:
        """Notes that the call has run. False if another has the key."""
        self._end()
        if self._fenced:
            return self._run(_COMPLETE, self._processing, self._completed, self._completion_ttl_ms)
        self._client.set(self.key, self._completed, px=self._completion_ttl_ms)
        return True

    def release(self) -> bool:
        """Gives the lock up, so that the call can run again. False if another has the key."""
        self._end()
        if self._fenced:
            return self._run(_RELEASE, self._processing)
        self._client.delete(self.key)
        return True

    def _run(self, script: str, *args: Any) -> bool:
        return bool(self._client.eval(script, 1, self.key, *args) == 1)

    def _keep(self) -> None:
        while not self._ended.wait(self._ttl_ms / 3000):
            expires = time.monotonic() + self._ttl_ms / 1000
            try:
                if not self.extend():
                    self._lost = True
                    return
                self._expires = expires
            except (redis.RedisError, OSError) as error:  # tried again while the lock holds
                _logger.warning("cannot extend %s: %s", self.key, error)
                if self.lost:
                    self._lost = True
                    return

    def _end(self) -> None:
        self._ended.set()
        if self._keeper is not None:
            self._keeper.join()


def _milliseconds(name: str, seconds: float) -> int:
    if not seconds >= 0.001:
        raise ValueError(f"{name} {seconds}: must be at least 0.001 seconds")
    return int(seconds * 1000)


def _is_task_id(text: str) -> bool:
    try:
        return 0 < len(text.encode()) <= _MAX_TASK_ID
    except UnicodeEncodeError:
        return False


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _refusal(value: str, remaining_ms: int) -> Refusal:
    """Reads a value of either form. Anything but completed stands for a run."""
    state, _, owner = value.partition(":")
    _, _, task_id = owner.partition(":")
    reason = ALREADY_COMPLETED if state == "completed" else CONCURRENT_EXECUTION
    return Refusal(reason, task_id, float("inf") if remaining_ms == -1 else max(0, remaining_ms) / 1000)
