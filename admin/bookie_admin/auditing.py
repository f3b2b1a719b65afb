"""What the audit log may say about a request: the names of its fields, their sizes, and the values of a few.

Fields in SHOWN are numbers and switches, which hold no secret whatever a caller sends. Fields in NAMED are words; they
are shown if the call succeeded, because then they are names that the bookie knows. All other fields are shown by their
size, so the audit log, which goes wherever logs go, never contains a ledger's password, a stored value or a body. Any
thread.
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
"""By method or path: fields that are numbers or switches. A text in such a field is shown only if it is a number or a
switch.
"""
NAMED: Mapping[str, tuple[str, ...]] = {
    "Bookie/SetLogLevel": ("logger", "level"),
    "MetadataStore/Delete": ("key",),
    "/api/v1/autorecovery/bookie": ("bookie_src",),
    "/api/v1/autorecovery/decommission": ("bookie_src",),
}
"""By method or path: fields that are words, which are shown if the call succeeded."""
TEXT_MAX = 200
LIST_MAX = 10
LINES_MAX = 10
"""Lines per second about refused calls of unknown callers."""


class LineLimit:
    """Limits lines to a number per second. Any thread."""

    def __init__(self, most: int = LINES_MAX, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        # Guarded by _lock:
        self._second = 0
        self._written = 0
        self._left_out = 0

    def left_out(self) -> int | None:
        """Return how many lines were left out before this one; None if this one must be left out too."""
        with self._lock:
            second = int(self._clock())
            if second != self._second:
                self._second, self._written = second, 0
            if self._written == self._most:
                self._left_out += 1
                return None
            self._written += 1
            found, self._left_out = self._left_out, 0
            return found


def of_message(action: str, request: Any, *, done: bool) -> str:
    """Describe a gRPC request by the fields that are set. `action` is `Service/Method`."""
    return _described(action, ((one.name, value) for one, value in request.ListFields()), done=done)


def of_http(path: str, params: Mapping[str, str], body: bytes, *, done: bool) -> str:
    """Describe the query and body of an HTTP request. Fields are only named if they are known here, because the caller
    chooses their names; the others are counted.
    """
    fields: dict[str, Any] = dict(params)
    if body.strip():
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            fields |= found
    known = (*SHOWN.get(path, ()), *NAMED.get(path, ()))
    described = _described(path, ((name, fields[name]) for name in known if name in fields), done=done)
    others = sum(name not in known for name in fields)
    sizes = [f"other fields: {others}"] if others else []
    sizes += [f"body: {len(body)} bytes"] if body else []
    return ", ".join(part for part in (described, *sizes) if part)


def _described(action: str, fields: Iterable[tuple[str, Any]], *, done: bool) -> str:
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
        items = [_value(one, words=words, shown=shown) for one in value[:LIST_MAX]]
        return f"[{', '.join(items)}{', …' if len(value) > LIST_MAX else ''}]"
    return "set"


def _is_plain(text: str) -> bool:
    digits = text.removeprefix("-")
    return text.lower() in ("true", "false") or (digits.isascii() and digits.isdigit() and len(digits) <= 19)
