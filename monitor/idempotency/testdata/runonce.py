import hashlib
import json
import secrets

import celery
import redis

LOCK_TTL = 600  # seconds: more than a call takes
COMPLETION_TTL = 86_400  # seconds for which a completed call is not repeated

# A worker changes a key only while the key holds its own value.
COMPLETE = """
local v = redis.call("GET", KEYS[1])
if v == ARGV[1] or v == ARGV[2] or not v then
  redis.call("SET", KEYS[1], ARGV[2], "PX", ARGV[3])
  return 1
end
return 0"""
RELEASE = """
if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end
return 0"""


def fingerprint(name, args, kwargs):
    call = [args, kwargs] if args else kwargs
    text = json.dumps(call, sort_keys=True, separators=(",", ":"))
    return "celery:exec:" + name + ":" + hashlib.sha256(text.encode()).hexdigest()


class Lock:
    """The lock of one call. Without fenced, it writes processing and completed, and does not notice its expiry."""

    def __init__(self, client, name, args, kwargs, task_id="", fenced=True, lock_ttl=LOCK_TTL, completion_ttl=COMPLETION_TTL):
        self.client, self.fenced = client, fenced
        self.lock_ttl, self.completion_ttl = int(lock_ttl * 1000), int(completion_ttl * 1000)
        self.key = "lock:" + fingerprint(name, args, kwargs)
        owner = ":" + secrets.token_hex(16) + (":" + task_id if task_id else "") if fenced else ""
        self.processing, self.completed = "processing" + owner, "completed" + owner

    def acquire(self):
        """Returns None, or why the call must not run."""
        if self.client.set(self.key, self.processing, nx=True, px=self.lock_ttl):
            return None
        found = self.client.get(self.key) or b""
        return "already_completed" if found.split(b":")[0] == b"completed" else "concurrent_execution"

    def complete(self):
        """Returns whether the lock was still ours."""
        if self.fenced:
            return bool(self.client.eval(COMPLETE, 1, self.key, self.processing, self.completed, self.completion_ttl))
        self.client.set(self.key, self.completed, px=self.completion_ttl)
        return True

    def release(self):
        """Returns whether the lock was still ours."""
        if self.fenced:
            return bool(self.client.eval(RELEASE, 1, self.key, self.processing))
        self.client.delete(self.key)
        return True


class RunOnce(celery.Task):
    """A task whose calls with equal arguments take effect once: @app.task(base=RunOnce)."""

    url = "redis://localhost/0"
    client = None

    def __call__(self, *args, **kwargs):
        if self.client is None:
            self.client = redis.Redis.from_url(self.url)
        lock = Lock(self.client, self.name, args, kwargs, self.request.id)
        reason = lock.acquire()
        if reason:
            return {"status": "skipped", "reason": reason}
        try:
            result = self.run(*args, **kwargs)
        except BaseException:
            lock.release()
            raise
        lock.complete()
        return result
