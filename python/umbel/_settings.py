"""What an app's settings say to Umbel: variables of its environment, which hold secrets better than its command line."""

from __future__ import annotations

import datetime
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from typing import Any, Callable, NamedTuple, Optional
from urllib.parse import quote, urlencode

RABBITMQ = ("amqp", "amqps", "pyamqp", "librabbitmq")
REDIS = ("redis", "rediss", "redis+socket", "sentinel")

# Options of transports that change nothing for Umbel.
_HARMLESS = re.compile(
    r"socket_.*|health_check_interval|retry_.*|max_(connections|retries)|interval_.*|errback|client_(name|properties)|connect_.*|confirm_.*"
    r"|queue_order_strategy|unacked_(mutex|restore).*|min_other_sentinels|polling_interval|additional_connection_errors|driver_info"
    r"|(read|write)_timeout|heartbeat|login_method|native_delayed.*|visibility_timeout|sentinel_fanout_compat"
)
_TLS_NAMES = ("ca_certs", "certfile", "keyfile", "cert_reqs", "check_hostname", "server_hostname")


class Unsupported(Exception):
    """A setting that Umbel cannot do with."""


class Environment(NamedTuple):
    """Variables for Umbel, and sentences about what it leaves out."""

    variables: dict[str, str]
    warnings: list[str]


def environment(app: Any, args: Iterable[str] = (), environ: Iterable[str] = ()) -> Environment:
    """Reads the settings of an app, except those that the arguments or the environment of Umbel name. Unsupported has the
    sentence for what it needs and cannot read."""
    e = Environment({}, [])
    names = {arg.partition("=")[0][len("--") :] for arg in args if arg.startswith("--")}
    names |= {name[len("UMBEL_") :].replace("_", "-").lower() for name in environ if name.startswith("UMBEL_")}
    conf = app.conf
    if names.isdisjoint({"broker-url", "broker-url-file"}):
        _broker(conf, e)
    if names.isdisjoint({"result-backend", "result-backend-file"}):
        _results(conf, e)
    if names.isdisjoint({"locks-url", "locks-url-file"}):
        _locks(conf, e)
    return e


def _broker(conf: Any, e: Environment) -> None:
    urls = _urls(conf.broker_read_url or conf.broker_url)
    if urls != _urls(conf.broker_write_url or conf.broker_url):
        e.warnings.append("broker_read_url and broker_write_url differ: Umbel uses broker_read_url for both")
    urls = [_complete(conf, url) for url in urls or ["amqp://"]]
    kind = _scheme(urls[0])
    if kind not in RABBITMQ + REDIS:
        raise Unsupported(f"the broker is {kind}://, and Umbel watches RabbitMQ and Redis only")
    if any("credential_provider=" in url for url in urls):
        raise Unsupported("the broker's password comes from a credential_provider, which Umbel cannot call: set UMBEL_BROKER_URL")
    tls = _tls("broker_use_ssl", conf.broker_use_ssl, e)
    if kind in RABBITMQ:
        if conf.broker_login_method not in (None, "PLAIN", "AMQPLAIN"):
            raise Unsupported(f"broker_login_method is {conf.broker_login_method}, and Umbel logs in to RabbitMQ with user and password only")
        urls = [re.sub("^(?i:librabbitmq)", "amqp", url) for url in urls]
        if conf.broker_use_ssl and not tls:
            tls = {"ssl": "true"}
    else:
        _redis("broker_transport_options", conf.broker_transport_options, _REDIS_VARIABLES, e)
    e.variables["UMBEL_BROKER_URL"] = ";".join(_with_query(url, tls) for url in urls)
    for name in ("event_exchange", "control_exchange"):
        if value := conf.get(name):
            e.variables["UMBEL_" + name.upper()] = str(value)
    if conf.event_serializer == "pickle":
        e.warnings.append("event_serializer is pickle, which Umbel does not decode: it will show no events")


def _results(conf: Any, e: Environment) -> None:
    backend = conf.result_backend
    if not isinstance(backend, str) or not backend or backend.startswith("disabled"):
        return
    if backend == "redis":
        backend = f"redis://{conf.redis_host or 'localhost'}:{conf.redis_port or 6379}/{conf.redis_db or 0}"
    elif backend == "database":
        backend = "db+" + (conf.get("database_url") or "")
    elif backend == "django-db":
        backend = _django()
    kind = _scheme(backend)
    if kind in REDIS:
        if "credential_provider=" in backend or conf.get("redis_backend_credential_provider"):
            e.warnings.append("the result backend's password comes from a credential_provider, which Umbel cannot call: it shows no stored results")
            return
        urls = [_login(url, conf.get("redis_username"), conf.get("redis_password")) for url in _urls(backend)]
        tls = _tls("redis_backend_use_ssl", conf.get("redis_backend_use_ssl"), e)
        e.variables["UMBEL_RESULT_BACKEND"] = ";".join(_with_query(url, tls) for url in urls)
        _redis("result_backend_transport_options", conf.result_backend_transport_options, _RESULT_VARIABLES, e)
        return
    if not re.match(r"(django-)?db\+(sqlite|postgres)", kind):
        e.warnings.append(f"the result backend is {kind}://, which Umbel cannot read: it shows what events tell of results")
        return
    e.variables["UMBEL_RESULT_BACKEND"] = backend
    table, schema = (conf.get("database_table_" + name, None) or {} for name in ("names", "schemas"))
    if not kind.startswith("django-") and (table.get("task") or schema.get("task")):
        e.variables["UMBEL_RESULT_TABLE"] = ".".join(filter(None, [schema.get("task"), table.get("task") or "celery_taskmeta"]))


def _locks(conf: Any, e: Environment) -> None:
    """Reads the settings of umbel.celery.IdempotentTask."""
    if url := conf.get("idempotency_redis_url"):
        e.variables["UMBEL_LOCKS_URL"] = url
        if master := (conf.get("idempotency_transport_options") or {}).get("master_name"):
            e.variables["UMBEL_LOCKS_MASTER"] = str(master)
    if prefix := conf.get("idempotency_key_prefix"):
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", prefix) + "lock:celery:exec:*"
        e.variables["UMBEL_LOCKS_PATTERN"] = _csv([pattern, "lock:celery:exec:*", "qo_*", "celery_singleton_*", "SINGLETONLOCK_*"])
    for name, variable in (("lock_ttl", "UMBEL_LOCKS_TTL"), ("completion_ttl", "UMBEL_LOCKS_COMPLETION_TTL")):
        if ttl := conf.get("idempotency_" + name):
            e.variables[variable] = _seconds(ttl)


def _csv(words: list[str]) -> str:
    return ",".join('"' + w.replace('"', '""') + '"' if set(w) & set('",\n') else w for w in words)


def _seconds(value: Any) -> str:
    return f"{value.total_seconds() if isinstance(value, datetime.timedelta) else float(value):f}s"


def _prefix(value: Any) -> str:
    return value if isinstance(value, str) else "" if value else "none"


def _negated(value: Any) -> str:
    return "" if value else "true"


_REDIS_VARIABLES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "master_name": ("UMBEL_REDIS_MASTER", str),
    "global_keyprefix": ("UMBEL_REDIS_KEY_PREFIX", str),
    "fanout_prefix": ("UMBEL_REDIS_FANOUT_PREFIX", _prefix),
    "fanout_patterns": ("UMBEL_REDIS_NO_FANOUT_PATTERNS", _negated),
    "sep": ("UMBEL_REDIS_SEPARATOR", str),
    "priority_steps": ("UMBEL_REDIS_PRIORITY_STEPS", lambda steps: ",".join(map(str, steps))),
    "unacked_key": ("UMBEL_REDIS_UNACKED_KEY", str),
    "unacked_index_key": ("UMBEL_REDIS_UNACKED_INDEX_KEY", str),
    "visibility_timeout": ("UMBEL_REDIS_VISIBILITY_TIMEOUT", _seconds),
    "sentinel username": ("UMBEL_REDIS_SENTINEL_USER", str),
    "sentinel password": ("UMBEL_REDIS_SENTINEL_PASSWORD", str),
}
_RESULT_VARIABLES: dict[str, tuple[str, Callable[[Any], str]]] = {
    "master_name": ("UMBEL_RESULT_MASTER", str),
    "global_keyprefix": ("UMBEL_RESULT_KEY_PREFIX", str),
    "sentinel username": ("UMBEL_RESULT_SENTINEL_USER", str),
    "sentinel password": ("UMBEL_RESULT_SENTINEL_PASSWORD", str),
}


def _redis(setting: str, options: Optional[Mapping[str, Any]], variables: dict[str, tuple[str, Callable[[Any], str]]], e: Environment) -> None:
    options = dict(options or {})
    for name, value in dict(options.pop("sentinel_kwargs", None) or {}).items():
        options["sentinel " + name] = value
    unknown = []
    for name, value in options.items():
        if name in variables:
            variable, spell = variables[name]
            if value is not None and (text := spell(value)):
                e.variables[variable] = text
        elif not _HARMLESS.fullmatch(name.replace("sentinel ", "", 1)):
            unknown.append(name.replace("sentinel ", "sentinel_kwargs: ", 1))
    if unknown:
        e.warnings.append(f"{setting} has {', '.join(unknown)}, which Umbel has no option for")


def _tls(setting: str, options: Any, e: Environment) -> dict[str, str]:
    """Returns the query of a URL that asks for TLS as an option such as broker_use_ssl does."""
    if not isinstance(options, Mapping):
        return {}
    query, unknown = {}, []
    for key, value in options.items():
        name = key[len("ssl_") :] if key.startswith("ssl_") else key
        if name not in _TLS_NAMES:
            unknown.append(key)
        elif name == "cert_reqs":
            query["ssl_cert_reqs"] = "none" if value in (ssl.CERT_NONE, None, False) or "none" in str(value).lower() else "required"
        elif value is not None:
            query["ssl_" + name] = str(value).lower() if isinstance(value, bool) else os.fspath(value)
    if unknown:
        e.warnings.append(f"{setting} has {', '.join(unknown)}, which Umbel has no option for")
    return query or {"ssl_cert_reqs": "required"}


def _urls(value: Any) -> list[str]:
    """Splits what Celery takes as one URL, several with semicolons between them, or a list."""
    words = value.split(";") if isinstance(value, str) else value or ()
    return [word.strip() for word in words if word.strip()]


def _scheme(url: str) -> str:
    return url.partition("://")[0].lower() if "://" in url else url.partition(":")[0].lower()


def _with_query(url: str, query: dict[str, str]) -> str:
    return url + ("&" if "?" in url else "?") + urlencode(query, quote_via=quote) if query else url


def _complete(conf: Any, url: str) -> str:
    """Adds what broker_transport, broker_user and their like say of a URL that lacks it."""
    if "://" not in url:
        aliases = {"": "amqp", "pyamqp": "amqp"}
        if url in RABBITMQ + REDIS:
            url += "://"
        else:
            url = aliases.get(conf.broker_transport or "", conf.broker_transport or "amqp") + "://" + url
    return _login(url, conf.broker_user, conf.broker_password, conf.broker_port, conf.broker_vhost)


def _login(url: str, user: Optional[str], password: Optional[str], port: Any = None, path: Optional[str] = None) -> str:
    """Adds user, password, port and path to a URL, as far as it has none."""
    if not (user or password or port or path) or "+socket" in _scheme(url):
        return url
    scheme, _, rest = url.partition("://")
    rest, mark, query = rest.partition("?")
    authority, slash, found = rest.partition("/")
    login, at, host = authority.rpartition("@")
    if not at and (user or password):
        login, at = quote(user or "", safe="") + (":" + quote(password, safe="") if password else ""), "@"
    if port and not re.search(r":\d+$", host):
        host = f"{host or 'localhost'}:{port}"
    if path and not found:
        slash, found = "/", quote(path, safe="")
    return f"{scheme}://{login}{at}{host}{slash}{found}{mark}{query}"


def _django() -> str:
    """Returns the URL of the database in which django-celery-results keeps results."""
    from django.conf import settings  # the app has configured it

    db = settings.DATABASES["default"]
    engine = db["ENGINE"].rpartition(".")[2]
    if engine == "sqlite3":
        return "django-db+sqlite:///" + str(db["NAME"])
    if engine in ("postgresql", "postgresql_psycopg2", "postgis"):
        url = _login(f"django-db+postgresql://{db.get('HOST') or 'localhost'}", db.get("USER"), db.get("PASSWORD"), db.get("PORT") or None)
        return f"{url}/{quote(str(db['NAME']), safe='')}"
    return f"django-db+{engine}://"
