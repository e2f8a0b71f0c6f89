"""Which calls of a task are equal: what Go's package monitor/idempotency computes, byte for byte."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

PREFIX = "celery:exec:"

_MAX_PATHS, _MAX_PATH_BYTES, _MAX_PRECISION = 100, 1024, 15
_KEY = re.compile(r"[A-Za-z0-9_\-\x80-\U0010ffff]+")
_INDEX = re.compile(r"\[(\*|0|[1-9][0-9]*)\]")
_decoder = json.JSONDecoder()


def canonical(value: Any) -> str:
    """Writes a value as canonical JSON. TypeError if it is none."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


class Fingerprinter:
    """Makes fingerprints of what counts of calls.

    only has the paths of the fields that count; without any, all do. without has those that do not count, whatever only
    says. precision is how many decimals of floats count, 0 to 15; None: all. A wrong option is a ValueError.
    """

    def __init__(self, only: Iterable[str] = (), without: Iterable[str] = (), precision: Optional[int] = None) -> None:
        self._only, self._without, self._precision = _parse("only", only), _parse("without", without), precision
        if precision is not None and not 0 <= precision <= _MAX_PRECISION:
            raise ValueError(f"precision {precision}: must be 0 to {_MAX_PRECISION}")

    def call(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """Returns the fingerprint of a call: of its keyword arguments alone, if no positional ones count."""
        # As they are once they have been sent: keys are text, tuples are lists.
        reduced_args, reduced_kwargs = (self._reduce(json.loads(json.dumps(v))) for v in (list(args), dict(kwargs)))
        text = canonical([reduced_args, reduced_kwargs] if reduced_args else reduced_kwargs)
        return PREFIX + task + ":" + hashlib.sha256(text.encode()).hexdigest()

    def _reduce(self, value: Any) -> Any:
        if self._only is not None:
            value = _keep(value, [self._only])
        if self._without is not None:
            value = _drop(value, [self._without])
        return value if self._precision is None else _round(value, self._precision)


class _Step:
    """A node of the tree that paths make: what comes next after a key, an index or [*]."""

    def __init__(self) -> None:
        self.next: dict[Any, _Step] = {}  # by key, index or _ANY
        self.end = False


_ANY = object()


def _parse(name: str, paths: Iterable[str]) -> Optional[_Step]:
    if isinstance(paths, str):
        raise ValueError(f"{name} {paths!r}: must be a list of paths")
    paths = list(paths)
    if not paths:
        return None
    if len(paths) > _MAX_PATHS:
        raise ValueError(f"{name} has {len(paths)} paths: at most {_MAX_PATHS} are allowed")
    root = _Step()
    for path in paths:
        step = root
        for part in _parts(path):
            step = step.next.setdefault(part, _Step())
        step.end = True
    return root


def _parts(path: str) -> list[Any]:
    """Splits a path, such as lines[*].sku, into keys, indexes and _ANY."""
    parts: list[Any] = []
    at = 0
    if len(path.encode("utf-8", "surrogatepass")) > _MAX_PATH_BYTES:
        raise ValueError(f"path {path[:64]!r}… is longer than {_MAX_PATH_BYTES:,} bytes")
    while at < len(path) or not parts:
        if path.startswith('["', at):
            try:
                key, at = _decoder.raw_decode(path, at + 1)
            except ValueError:
                key, at = None, len(path)
            if not path.startswith("]", at):
                raise ValueError(f'path {path!r}: a key between [ and ] must be a string of JSON, as in ["x.y"]')
            parts.append(key)
            at += 1
        elif path.startswith("[", at):
            index = _INDEX.match(path, at)
            if not index:
                raise ValueError(f"path {path!r}: an index must be a number or *, as in [0] or [*]")
            parts.append(_ANY if index[1] == "*" else int(index[1]))
            at = index.end()
        else:
            if parts:
                if path[at] != ".":
                    raise ValueError(f"path {path!r}: a dot must stand between keys")
                at += 1
            bare = _KEY.match(path, at)
            if not bare:
                raise ValueError(f'path {path!r}: a key must be letters, digits, _ and -, or be written as in ["x.y"]')
            parts.append(bare[0])
            at = bare.end()
    return parts


def _after(steps: list[_Step], part: Any) -> tuple[list[_Step], bool]:
    """Returns where paths lead from a container to a part of it, and whether one of them ends there."""
    names = (part,) if isinstance(part, str) else (part, _ANY)
    found = [step.next[name] for step in steps for name in names if name in step.next]
    return found, any(step.end for step in found)


def _keep(value: Any, steps: list[_Step]) -> Any:
    """Returns what paths lead to, or lead through if it is a container."""
    kept: list[tuple[Any, Any]] = []
    for part, item in _items(value):
        following, end = _after(steps, part)
        if end:
            kept.append((part, item))
        elif following and isinstance(item, (dict, list)):
            kept.append((part, _keep(item, following)))
    return _rebuild(value, kept)


def _drop(value: Any, steps: list[_Step]) -> Any:
    """Returns value without what paths lead to."""
    if not isinstance(value, (dict, list)):
        return value
    kept: list[tuple[Any, Any]] = []
    for part, item in _items(value):
        following, end = _after(steps, part)
        if not end:
            kept.append((part, _drop(item, following) if following else item))
    return _rebuild(value, kept)


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _rebuild(value: Any, kept: list[tuple[Any, Any]]) -> Any:
    return dict(kept) if isinstance(value, dict) else [item for _, item in kept]


def _round(value: Any, decimals: int) -> Any:
    if isinstance(value, float):
        return round(value, decimals)
    if isinstance(value, (dict, list)):
        return _rebuild(value, [(part, _round(item, decimals)) for part, item in _items(value)])
    return value
