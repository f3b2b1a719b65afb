"""The mode of the bookie: it is writable while there is no reason for being read-only.

Any thread. Reasons are `config` (forceReadOnlyBookie), `disk` (a full or failing one), and `operator` (through the
admin plane). Each is withdrawn only by the part that set it, so a disk with free space again does not undo the
operator's request.
"""

import logging
import threading
from collections.abc import Callable

__all__ = ["Mode"]

log = logging.getLogger(__name__)


class Mode:
    """Notifies followers, one call at a time, whenever the outcome of all reasons changes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: set[str] = set()  # guarded by _lock, as is _followers
        self._followers: list[Callable[[bool], None]] = []
        self._reason_followers: list[Callable[[frozenset[str]], None]] = []

    @property
    def read_only(self) -> bool:
        return bool(self._reasons)

    @property
    def reasons(self) -> frozenset[str]:
        """The reasons that apply now."""
        with self._lock:
            return frozenset(self._reasons)

    def follow(self, tell: Callable[[bool], None]) -> None:
        """Call `tell` with the present mode, and after every change."""
        with self._lock:
            self._followers.append(tell)
            tell(bool(self._reasons))

    def follow_reasons(self, tell: Callable[[frozenset[str]], None]) -> None:
        """Call `tell` with the present reasons, and after every change."""
        with self._lock:
            self._reason_followers.append(tell)
            tell(frozenset(self._reasons))

    def set(self, reason: str, *, read_only: bool) -> None:
        """Set one reason for being read-only, or withdraw it."""
        with self._lock:
            if (reason in self._reasons) == read_only:
                return
            before = bool(self._reasons)
            (self._reasons.add if read_only else self._reasons.discard)(reason)
            after = bool(self._reasons)
            for tell_reasons in self._reason_followers:
                tell_reasons(frozenset(self._reasons))
            if before == after:
                return
            log.warning("the mode has changed", extra={"read_only": after, "reasons": ",".join(sorted(self._reasons))})
            for tell in self._followers:
                tell(after)
