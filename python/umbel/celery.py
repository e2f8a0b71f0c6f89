"""Celery tasks whose calls with equal arguments take effect once.

    from umbel.celery import IdempotentTask

    @app.task(base=IdempotentTask)
    def charge(order_id, amount): ...
"""

from __future__ import annotations

import contextvars
import functools
import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Optional

import celery
from celery.exceptions import Retry

from umbel import _redis
from umbel._fingerprint import Fingerprinter
from umbel._lock import CONCURRENT_EXECUTION, KEY_PREFIX, Lock, Refusal

__all__ = ["IdempotentTask", "LockLost"]

_logger = logging.getLogger(__name__)
_current: contextvars.ContextVar[Optional[Lock]] = contextvars.ContextVar("umbel_lock", default=None)
_fingerprinter = functools.lru_cache(maxsize=None)(Fingerprinter)


class LockLost(Exception):
    """The lock of a call was lost while the call ran: another may have run it too."""


class IdempotentTask(celery.Task):
    """A task that runs once for all calls with equal arguments.

    A call takes a lock in Redis, which is extended while it runs. Once it has returned, the lock says so for
    completion_ttl, and further calls return {"status": "skipped", "reason": "already_completed"}; while it runs, the
    reason is "concurrent_execution". A call that raises releases its lock, and can run again. A task that Celery delivers again,
    because its worker died, waits until the lock of the dead run has expired.

    Options are attributes, which @app.task sets too; None means the setting of the app that is named here.
    """

    abstract = True

    #: Seconds for which a lock holds that is not extended, since its worker is dead or cannot reach Redis.
    #: idempotency_lock_ttl; 600.
    lock_ttl: Optional[float] = None
    #: Seconds for which a completed call is skipped. idempotency_completion_ttl; 86,400.
    completion_ttl: Optional[float] = None
    #: Begins the keys of locks, before "lock:". idempotency_key_prefix; empty.
    lock_key_prefix: Optional[str] = None
    #: Whether locks name their owner. False writes "processing" and "completed" alone, for programs that expect these exactly;
    #: a worker that lost such a lock can change that of another.
    lock_fenced: bool = True
    #: Paths of the arguments that count, such as "order.id", "lines[*].sku", "[0]"; without any, all do.
    fingerprint_only: Sequence[str] = ()
    #: Paths of the arguments that do not count, whatever fingerprint_only says.
    fingerprint_without: Sequence[str] = ()
    #: How many decimals of floats count, 0 to 15. None: all.
    fingerprint_precision: Optional[int] = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        lock = self._lock(args, kwargs)
        refusal = lock.acquire()
        if refusal is not None:
            return self._refuse(lock, refusal)
        outer = _current.set(lock)
        try:
            lock.keep()
            result = self.run(*args, **kwargs)
        except BaseException:
            self._release(lock)
            raise
        finally:
            _current.reset(outer)
        if not lock.complete():
            raise LockLost(f"{lock.key} was taken by another run before this one returned")
        return result

    def fingerprint(self, args: Sequence[Any] = (), kwargs: Optional[Mapping[str, Any]] = None) -> str:
        """Returns the fingerprint of a call, which names it in Redis and can name it to other services too.

        Override it for arguments that are not JSON, which raise TypeError.
        """
        f = _fingerprinter(tuple(self.fingerprint_only), tuple(self.fingerprint_without), self.fingerprint_precision)
        return f.call(self.name, args, kwargs or {})

    def lock_client(self) -> Any:
        """Returns the redis.Redis with the locks: that of the setting idempotency_redis_url, else the broker, else the result
        backend, as far as they are Redis."""
        # A plain value does not tell whether SET NX, sent again, has found its own key.
        return _redis.client(_redis.source_of(self.app), retry=self.lock_fenced)

    def check_lock(self) -> None:
        """Raises LockLost if the lock of the call that runs was lost. Call it before a step that must not happen twice."""
        lock = _current.get()
        if lock is not None and lock.lost:
            raise LockLost(f"{lock.key} has expired or was taken by another run")

    def retry(self, *args: Any, **kwargs: Any) -> Any:
        """Is celery.Task.retry, which gives the lock up first, so that the next attempt finds it free."""
        lock = _current.get()
        if lock is not None:
            self._release(lock)
        return super().retry(*args, **kwargs)

    def _lock(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Lock:
        prefix = self._setting(self.lock_key_prefix, "idempotency_key_prefix", "")
        return Lock(
            self.lock_client(),
            prefix + KEY_PREFIX + self.fingerprint(args, kwargs),
            self.request.id or "",
            ttl=self._setting(self.lock_ttl, "idempotency_lock_ttl", 600),
            completion_ttl=self._setting(self.completion_ttl, "idempotency_completion_ttl", 86_400),
            fenced=self.lock_fenced,
        )

    def _setting(self, value: Any, name: str, default: Any) -> Any:
        return self.app.conf.get(name, default) if value is None else value

    def _release(self, lock: Lock) -> None:
        """Releases a lock after a failure, which matters more than that of the release."""
        try:
            lock.release()
        except Exception as error:
            _logger.warning("cannot release %s, which expires by itself: %s", lock.key, error)

    def _refuse(self, lock: Lock, refusal: Refusal) -> dict[str, str]:
        outer, request = _current.get(), self.request
        nested = outer is not None and outer.key == lock.key
        delivered = not nested and not request.called_directly and not request.is_eager
        if delivered and refusal.reason == CONCURRENT_EXECUTION and refusal.task_id and refusal.task_id == request.id:
            self._wait(refusal)
        _logger.info("task %s[%s] skipped: %s", self.name, request.id, refusal.reason)
        return {"status": "skipped", "reason": refusal.reason}

    def _wait(self, refusal: Refusal) -> NoReturn:
        """Sends the message of this task again, for when the lock of its other delivery expires: the worker that held it
        may be dead, and then nothing else runs the call. It is no attempt that retries count."""
        request = self.request
        seconds = refusal.remaining if math.isfinite(refusal.remaining) else self._setting(self.lock_ttl, "idempotency_lock_ttl", 600)
        again = self.signature_from_request(request, countdown=seconds, retries=request.retries)
        again.apply_async()
        raise Retry("its call is locked by another delivery of it", when=seconds, sig=again)
