"""A start that waits for the metadata store, which may come up after the bookie. Main thread."""

import logging
import time
from collections.abc import Callable
from threading import Event

from bookie.errors import MetadataStoreError
from bookie.server.process.notify import notify

__all__ = ["start_patiently"]

PAUSE_S = 1.0
"""The pause between two attempts, which may themselves take as long as a session timeout."""
STEP_S = 0.1
LOG_S = 60.0

log = logging.getLogger(__name__)


def start_patiently(start: Callable[[], None], timeout_ms: int, go_on: Callable[[], None]) -> None:
    """Call `start` until it succeeds.

    The log has a line at the first failure and one a minute, and systemd's status says what the bookie waits for.

    Args:
        start: Connects to the store, and may be called again after MetadataStoreError.
        timeout_ms: After this time the last error is raised; 0 for one attempt, -1 for no limit.
        go_on: Called every 0.1 s between attempts; an exception of it ends the wait.

    Raises:
        MetadataStoreError: The store did not answer in time. Other errors of `start` are raised at once.
    """
    begun = time.monotonic()
    logged = -LOG_S
    while True:
        try:
            start()
        except MetadataStoreError as error:
            waited = time.monotonic() - begun
            if timeout_ms >= 0 and waited * 1000 >= timeout_ms:
                told = f" within {timeout_ms / 1000:g} s (startupMetadataTimeoutMs)" if timeout_ms else ""
                raise MetadataStoreError(f"the metadata store could not be reached{told}: {error}") from error
            if waited - logged >= LOG_S:
                log.warning(
                    "the metadata store is out of reach; the start waits for it",
                    extra={"error": error, "seconds": round(waited), "limit_ms": timeout_ms},
                )
                logged = waited
            notify(f"STATUS=waiting for the metadata store, for {waited:.0f} s until now")
            _pause(go_on)
        else:
            break
    if logged >= 0:
        log.info("the metadata store answers", extra={"seconds": round(time.monotonic() - begun)})


def _pause(go_on: Callable[[], None]) -> None:
    end = time.monotonic() + PAUSE_S
    while time.monotonic() < end:
        go_on()
        Event().wait(STEP_S)
    go_on()
