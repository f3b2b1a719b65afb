"""What the audit may say about a request: the names of its fields, how much they hold, and the values of a few.

Values that hold no secret whatever a caller sends, numbers and switches, stand in SHOWN; words stand in NAMED and are
shown of what was done, for then they are names that the bookie knows. All else is told by its size, so that an audit,
which goes where logs go, never holds a ledger's password, a stored value, or a body. Any thread.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

__all__ = ["LineLimit", "NAMED", "of_http", "of_message", "SHOWN"]

SHOWN: Mapping[str, tuple[str, ...]] = {
    "Bookie/LiftQuarantine": ("ledger",),
    "Bookie/SetReadOnly": ("read_only",),
    "Bookie/WriteClose": ("ledgers",),
    "GarbageCollection/Force": ("major", "minor", "mass_deletion"),
    "GarbageCollection/Resume": ("major", "minor"),
    "GarbageCollection/Suspend": ("major", "minor"),
    "MetadataStore/Delete": ("expected",),
    "MetadataStore/Put": ("expected",),
    "Scrub/SetPace": ("bytes_per_s",),
    "/api/v1/autorecovery/bookie": ("delete_cookie",),
    "/api/v1/autorecovery/decommission": ("delete_cookie",),
    "/api/v1/autorecovery/lost_bookie_recovery_delay": ("delay_seconds",),
    "/api/v1/autorecovery/status": ("enabled",),
    "/api/v1/bookie/gc": ("forceMajor", "forceMinor"),
    "/api/v1/bookie/gc/resume_compaction": ("resumeMajor", "resumeMinor"),
    "/api/v1/bookie/gc/suspend_compaction": ("suspendMajor", "suspendMinor"),
    "/api/v1/bookie/state/readonly": ("readOnly",),
    "/api/v1/ledger/delete": ("ledger_id",),
}
"""By method or path: fields of numbers and switches. A text there is shown if it is a number or a switch."""
NAMED: Mapping[str, tuple[str, ...]] = {
    "Bookie/SetLogLevel": ("logger", "level"),
    "MetadataStore/Delete": ("key",),
    "/api/v1/autorecovery/bookie": ("bookie_src",),
    "/api/v1/autorecovery/decommission": ("bookie_src",),
}
"""Fields of words, which are shown when the order was carried out."""
TEXT_MAX = 200
LIST_MAX = 10
LINES_MAX = 10
"""A second, of what strangers are refused."""


class LineLimit:
    """So many lines a second. Any thread."""

    def __init__(self, most: int = LINES_MAX, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._second = 0
        self._told = 0
        self._left_out = 0

    def left_out(self) -> int | None:
        """How many lines were left out before this one; None: leave this one out, too."""
        with self._lock:
            second = int(self._clock())
            if second != self._second:
                self._second, self._told = second, 0
            if self._told == self._most:
                self._left_out += 1
                return None
            self._told += 1
            found, self._left_out = self._left_out, 0
            return found


def of_message(action: str, request: Any, *, done: bool) -> str:
    """A gRPC request, `action` as `Service/Method`; only fields that are set."""
    return _told(action, ((one.name, value) for one, value in request.ListFields()), done=done)


def of_http(path: str, params: Mapping[str, str], body: bytes, *, done: bool) -> str:
    """A query and a body. Names are the caller's own words, too: those that are not known here are counted."""
    fields: dict[str, Any] = dict(params)
    if body.strip():
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            fields |= found
    known = (*SHOWN.get(path, ()), *NAMED.get(path, ()))
    told = _told(path, ((name, fields[name]) for name in known if name in fields), done=done)
    others = sum(name not in known for name in fields)
    sizes = [f"other fields: {others}"] if others else []
    sizes += [f"body: {len(body)} bytes"] if body else []
    return ", ".join(part for part in (told, *sizes) if part)


def _told(action: str, fields: Iterable[tuple[str, Any]], *, done: bool) -> str:
    shown, named = SHOWN.get(action, ()), NAMED.get(action, ()) if done else ()
    return ", ".join(f"{name}: {_value(value, words=name in named, shown=name in shown)}" for name, value in fields)


def _value(value: Any, *, words: bool, shown: bool) -> str:
    if isinstance(value, str) and (words or (shown and _is_plain(value))):
        return json.dumps(value[:TEXT_MAX])
    if isinstance(value, bool | int):
        return json.dumps(value) if shown else "set"
    if isinstance(value, str | bytes):
        return f"{len(value)} {'characters' if isinstance(value, str) else 'bytes'}"
    if isinstance(value, Sequence):
        told = [_value(one, words=words, shown=shown) for one in value[:LIST_MAX]]
        return f"[{', '.join(told)}{', …' if len(value) > LIST_MAX else ''}]"
    return "set"


def _is_plain(text: str) -> bool:
    digits = text.removeprefix("-")
    return text.lower() in ("true", "false") or (digits.isascii() and digits.isdigit() and len(digits) <= 19)
