"""The Redis of an app's locks."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import redis
from celery.exceptions import ImproperlyConfigured
from kombu.utils.url import url_to_parts
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

_SCHEMES = ("redis", "rediss", "redis+socket", "sentinel")
_TIMEOUT = 5  # seconds, of a connection and of a reply: a lock must not wait for ever


class Source(NamedTuple):
    """Where a Redis is, as settings of Celery say it."""

    url: str
    tls: Any = None  # as broker_use_ssl
    options: Any = None  # as broker_transport_options


_clients: dict[str, Any] = {}
_clients_mutex = threading.Lock()


def client(source: Source, retry: bool = True) -> Any:
    """Returns the client of a Redis, one for all its users in this process. It connects when it is used. With retry, it sends
    a command again whose reply was lost."""
    name = repr((source, retry))
    with _clients_mutex:
        if name not in _clients:
            _clients[name] = _connect(source, {} if retry else {"retry": Retry(NoBackoff(), 0)})
        return _clients[name]


def source_of(app: Any) -> Source:
    """Returns the Redis of an app's locks: idempotency_redis_url, else the broker, else the result backend."""
    conf = app.conf
    if url := conf.get("idempotency_redis_url"):
        return Source(url, None, conf.get("idempotency_transport_options"))
    broker = conf.broker_write_url
    if not isinstance(broker, str):
        broker = ";".join(broker or ())
    if _is_redis(broker):
        return Source(broker, conf.broker_use_ssl, conf.broker_transport_options)
    backend = conf.result_backend
    if isinstance(backend, str) and _is_redis(backend):
        return Source(backend, conf.redis_backend_use_ssl, conf.result_backend_transport_options)
    raise ImproperlyConfigured("neither the broker nor the result backend is Redis: set idempotency_redis_url to where locks are kept")


def _is_redis(url: str) -> bool:
    return url.partition("://")[0].strip().lower() in _SCHEMES


def _connect(source: Source, extra: dict[str, Any]) -> Any:
    urls = [url.strip() for url in source.url.split(";") if url.strip()]
    parts = [url_to_parts(url) for url in urls]
    if not parts or not all(_is_redis(url) for url in urls):
        raise ImproperlyConfigured("the URL of locks must begin with redis://, rediss://, redis+socket:// or sentinel://")
    first = parts[0]
    options: dict[str, Any] = {
        "username": first.username or None,
        "password": first.password or None,
        "socket_timeout": _TIMEOUT,
        "socket_connect_timeout": _TIMEOUT,
        "health_check_interval": 30,
        **extra,
    }
    if first.scheme == "redis+socket":
        return redis.Redis(unix_socket_path="/" + (first.path or ""), db=int(first.query.get("virtual_host", 0)), **options)
    options["db"] = int((first.path or "").strip("/") or 0)
    options.update(_tls(first.scheme, source.tls, first.query))
    if first.scheme == "sentinel":
        settings = source.options or {}
        if not settings.get("master_name"):
            raise ImproperlyConfigured("sentinels of locks need a master_name in the transport options")
        sentinels = [(p.hostname or "localhost", p.port or 26379) for p in parts]
        watch = Sentinel(sentinels, sentinel_kwargs=settings.get("sentinel_kwargs"), **options)
        return watch.master_for(settings["master_name"])
    return redis.Redis(host=first.hostname or "localhost", port=first.port or 6379, **options)


def _tls(scheme: str, tls: Any, query: dict[str, str]) -> dict[str, Any]:
    """Returns redis-py's options of TLS, from a URL and a setting such as broker_use_ssl. Certificates are verified
    unless one of them says otherwise."""
    options: dict[str, Any] = {k: v for k, v in query.items() if k.startswith("ssl_")}
    if isinstance(tls, dict):
        options.update(tls)
    if scheme != "rediss" and not options:
        return {}
    reqs = options.get("ssl_cert_reqs")
    if isinstance(reqs, str):
        options["ssl_cert_reqs"] = reqs.lower().replace("cert_", "")
    check = options.get("ssl_check_hostname")
    if isinstance(check, str):
        options["ssl_check_hostname"] = check.lower() != "false"
    if options.get("ssl_cert_reqs") in ("none", 0):
        options["ssl_check_hostname"] = False  # else redis-py refuses
    return {"ssl": True, **options}
