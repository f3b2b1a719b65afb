"""Does this bookie work? A few entries go through its own data port and come back. Any thread; blocks.

The ledger has an id of its own and no metadata, so garbage collection takes it away.
"""

import secrets
import threading

from admin.bookie_calls import ask
from bookie.client.channel.v3 import ChannelV3
from bookie.client.entries.digest import Digest
from bookie.errors import BookKeeperError
from bookie.server.control import Control

__all__ = ["sanity"]

ENTRIES = 10
_one = threading.Lock()
"""A test at a time, whoever asks."""


def sanity(control: Control, timeout_s: float) -> str:
    """What is wrong, in a line; empty when all is well. The bookie's metrics tell it, too."""
    if not _one.acquire(timeout=timeout_s):
        return f"another test has been running for {timeout_s:g} s"
    try:
        ledger = control.metadata.ledgers.new_id()
        problem = ask(control.metadata, control.bookie_id, timeout_s, lambda channel: _tried(channel, ledger))
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
            return f"entry {entry} came back other than it was written"
    return ""
