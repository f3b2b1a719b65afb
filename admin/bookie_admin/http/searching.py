"""Searches for ledgers by id, custom metadata, state and bookie, with the sum of their sizes. Runs on
`RequestThreads`.

The metadata store has no index over these, so a search reads one ledger after the other for a limited time. It returns
where it stopped, and the next call continues there.
"""

import time
from collections.abc import Iterator
from typing import Any

from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata.driver import MetadataDriver, Versioned
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie_admin.http.request import HttpRequest, Refused

__all__ = ["search"]

SHOWN_MAX = 500
TIME_SHARE = 0.5
"""The share of the request's timeout that a search may use."""


def search(request: HttpRequest) -> dict[str, Any]:
    """Search for ledgers by the parameters of a request.

    The parameters are `after`: only larger ids; `limit`: the most rows; `text`: occurs in a key or value of custom
    metadata, or `key=value` for an exact match; `state`; `bookie`.

    Returns:
        The rows that match, the sums over them, the number of ledgers examined, and in `next` the id after which to
            continue, or None if all ledgers were examined.

    Raises:
        Refused: a parameter is invalid.
    """
    after, limit = request.number("after", -1, low=-1), request.number("limit", 100, low=1, high=SHOWN_MAX)
    text, bookie = request.params.get("text", ""), request.params.get("bookie", "")
    state = request.params.get("state", "")
    if state and state not in LedgerState.__members__:
        raise Refused(400, f"state={state[:40]!r} is unknown; send OPEN, IN_RECOVERY or CLOSED")
    end = time.monotonic() + TIME_SHARE * request.timeout_s
    rows: list[dict[str, Any]] = []
    looked, length, entries, last = 0, 0, 0, after
    complete = True
    for ledger, found in _from(request.control.metadata, after):
        looked, last = looked + 1, ledger
        value = found.value
        if _fits(value, text, state, bookie):
            rows.append(_row(ledger, found))
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


def _from(driver: MetadataDriver, after: int) -> Iterator[tuple[int, Versioned[LedgerMetadata]]]:
    for piece in driver.ledgers.ranges():
        for ledger in piece:
            if ledger <= after:
                continue
            try:
                found = driver.ledgers.read(ledger)
            except NoSuchLedgerMetadata:  # the ledger was deleted after it was listed
                continue
            yield ledger, found


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


def _row(ledger: int, found: Versioned[LedgerMetadata]) -> dict[str, Any]:
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
