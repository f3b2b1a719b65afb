"""The sanity test: writes a few entries through the bookie's own data port and reads them back. Any thread; it blocks.

Its ledger has a new id and no metadata, so garbage collection removes it.
"""

import secrets
import threading

from bookie.client.channel.v3 import ChannelV3
from bookie.client.entries.digest import Digest
from bookie.errors import BookKeeperError
from bookie.metadata.patience import at_most
from bookie.server.control import Control
from bookie_admin.bookie_calls import ask, client_settings, security_of
from bookie_admin.store_calls import STORE_S

__all__ = ["sanity"]

ENTRIES = 10
STORE_SHARE = 0.3
"""The share of the time that the metadata store has for each of two answers, so that the caller hears that it was the
store that did not answer.
"""
_one = threading.Lock()
"""Held while a test runs: one at a time, whoever requests it."""


def sanity(control: Control, timeout_s: float) -> str:
    """Run the test, and note the result in the bookie's metrics.

    Args:
        control: the bookie.
        timeout_s: how long to wait for each response, and for another test to end.

    Returns:
        What is wrong, as one line; "" if the test passed.
    """
    if not _one.acquire(timeout=timeout_s):
        return f"another sanity test has been running for {timeout_s:g} s; retry later"
    try:
        with at_most(min(STORE_S, STORE_SHARE * timeout_s)):
            ledger = control.metadata.ledgers.new_id()
            problem = ask(
                control.metadata,
                control.bookie_id,
                timeout_s,
                lambda channel: _tried(channel, ledger),
                security_of(client_settings(control.client_keys)),
            )
    except BookKeeperError as error:
        problem = str(error)
    finally:
        _one.release()
    control.note_sanity(passed=not problem)
    return problem


def _tried(channel: ChannelV3, ledger: int) -> str:
    digest, payload = Digest.of(password=secrets.token_bytes(8)), secrets.token_bytes(100)
    for entry in range(ENTRIES):
        channel.add(ledger, entry, payload, digest=digest, lac=entry - 1, length=(entry + 1) * len(payload))
    for entry in range(ENTRIES):
        if bytes(digest.open(channel.read(ledger, entry), ledger, entry).payload) != payload:
            return f"entry {entry}: the data read differs from what was written"
    return ""
