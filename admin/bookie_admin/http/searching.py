"""Searches for ledgers by id, custom metadata, state and bookie, with the sum of their sizes. Runs on
`RequestThreads`.

The metadata store has no index over these, so a search reads one ledger after the other for a limited time. It returns
where it stopped, and the next call continues there.
"""

import heapq
import time
from collections.abc import Iterator
from typing import Any

from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata.driver import MetadataDriver, Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie_admin.http.request import HttpRequest, Refused

__all__ = ["row_of", "search", "TIME_SHARE"]

SHOWN_MAX = 500
NEWEST_MAX = 10_000
"""The most ids that a search from the newest ledger on holds at a time."""
TIME_SHARE = 0.5
"""The share of the request's timeout that a search may use."""


def search(request: HttpRequest) -> dict[str, Any]:
    """Search for ledgers by the parameters of a request.

    The parameters are `order`: `oldest` (the default) or `newest`, by id; `after`: only ids that come after this one in
    that order; `limit`: the most rows; `text`: occurs in a key or value of custom
    metadata, or `key=value` for an exact match; `state`; `bookie`.

    Returns:
        The rows that match, the sums over them, the number of ledgers examined, and in `next` the id after which to
            continue, or None if all ledgers were examined.

    Raises:
        Refused: a parameter is invalid.
    """
    order = request.params.get("order", "oldest")
    if order not in ("oldest", "newest"):
        raise Refused(400, f"order={order[:40]!r} is unknown; send oldest or newest")
    newest = order == "newest"
    after, limit = (
        request.number("after", 2**63 - 1 if newest else -1, low=-1),
        request.number("limit", 100, low=1, high=SHOWN_MAX),
    )
    text, bookie = request.params.get("text", ""), request.params.get("bookie", "")
    state = request.params.get("state", "")
    if state and state not in LedgerState.__members__:
        raise Refused(400, f"state={state[:40]!r} is unknown; send OPEN, IN_RECOVERY or CLOSED")
    end = time.monotonic() + TIME_SHARE * request.timeout_s
    rows: list[dict[str, Any]] = []
    looked, length, entries, last = 0, 0, 0, after
    complete = True
    driver = request.control.metadata
    for ledger in _newest(driver, after) if newest else _oldest(driver, after):
        try:
            found = driver.ledgers.read(ledger)
        except NoSuchLedgerMetadata:  # the ledger was deleted after it was listed
            continue
        looked, last = looked + 1, ledger
        value = found.value
        if _fits(value, text, state, bookie):
            rows.append(row_of(ledger, found))
            length, entries = length + value.length, entries + value.last_entry + 1
        if len(rows) == limit or time.monotonic() > end:
            complete = False
            break
    return {
        "ledgers": rows,
        "looked": looked,
        "length": length,
        "entries": entries,
        "next": None if complete else last,
    }


def _oldest(driver: MetadataDriver, after: int) -> Iterator[int]:
    yield from (ledger for piece in driver.ledgers.ranges() for ledger in piece if ledger > after)


def _newest(driver: MetadataDriver, before: int) -> Iterator[int]:
    """Yield ids in descending order. The store lists them in ascending order, so it is asked once for some of them."""
    while True:
        ids = (ledger for piece in driver.ledgers.ranges() for ledger in piece if ledger < before)
        found = heapq.nlargest(NEWEST_MAX, ids)
        yield from found
        if len(found) < NEWEST_MAX:
            return
        before = found[-1]


def _fits(value: LedgerMetadata, text: str, state: str, bookie: str) -> bool:
    if state and value.state.name != state:
        return False
    if bookie and not any(bookie in one.bookies for one in value.segments):
        return False
    if not text:
        return True
    key, equals, wanted = text.partition("=")
    if equals:
        return value.custom.get(key.strip()) == wanted.strip().encode()
    data = text.lower().encode()
    return any(data in name.lower().encode() or data in one.lower() for name, one in value.custom.items())


def row_of(ledger: int, found: Versioned[LedgerMetadata]) -> dict[str, Any]:
    """Return a ledger as a row of a table."""
    value = found.value
    return {
        "ledger": ledger,
        "state": value.state.name,
        "length": value.length,
        "lastEntry": value.last_entry,
        "quorums": f"{value.ensemble_size}/{value.write_quorum}/{value.ack_quorum}",
        "segments": len(value.segments),
        "createdMs": value.ctime_ms if value.ctime_ms is not None else found.created_ms,
        "custom": {key: one[:200].decode("utf-8", "backslashreplace") for key, one in value.custom.items()},
    }
