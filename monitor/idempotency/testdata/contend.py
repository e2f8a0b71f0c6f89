"""Contends for locks: contend.py URL NAME KEYS FENCED TTL_MS, until the key stop:NAME exists.

Each run is written to the list log:NAME:KEY, with times of Redis in microseconds.
"""

import random
import sys
import time

import redis
from umbel._fingerprint import Fingerprinter
from umbel._lock import KEY_PREFIX, Lock

url, name, keys, fenced, ttl = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "fenced", int(sys.argv[5]) / 1000
client = redis.Redis.from_url(url)
worker = "python-%016x" % random.getrandbits(64)


def now():
    seconds, micros = client.time()
    return seconds * 1_000_000 + micros


def log(i, what, tried):
    client.rpush(f"log:{name}:{i}", f"{what} {worker} {tried} {now()}")


while not client.exists(f"stop:{name}"):
    i = random.randrange(keys)
    fingerprint = Fingerprinter().call(name, [], {"order": i, "note": "ü\ud83d", "amount": 1e16})
    lock = Lock(client, KEY_PREFIX + fingerprint, worker, ttl=ttl, completion_ttl=60, fenced=fenced)
    tried = now()
    if lock.acquire():
        time.sleep(0.001)
        continue
    log(i, "enter", tried)
    chance = random.random()
    if chance < 0.05:
        print("hang", flush=True)
        time.sleep(60)  # until it is killed
    if chance < 0.10 and fenced:
        time.sleep(ttl * 1.5)
    else:
        time.sleep(0.005)
    if chance > 0.98:
        log(i, "done" if lock.complete() else "lost", tried)
    else:
        # Written before, since the next one can enter before the reply arrives.
        log(i, "leave", tried)
        lock.release()
