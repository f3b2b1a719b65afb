"""Endpoints of the console about logs, which are named lists of ledgers. Runs on `RequestThreads`."""

import time

from bookie.errors import NoSuchLedgerMetadata, NoSuchLog
from bookie_admin.http.request import HttpRequest, Refused, Reply, reply_json
from bookie_admin.http.searching import TIME_SHARE, row_of

__all__ = ["log", "logs"]

SHOWN_MAX = 500


def logs(request: HttpRequest) -> Reply:
    """Return logs in the order of their names, with the number of their ledgers.

    The parameters are `text`: occurs in the name; `after`: only later names; `limit`: the most rows. `next` is the name
    after which to continue, or None.
    """
    text, after = request.params.get("text", "").lower(), request.params.get("after", "")
    limit = request.number("limit", 100, low=1, high=SHOWN_MAX)
    end = time.monotonic() + TIME_SHARE * request.timeout_s
    store = request.control.metadata.logs
    rows: list[dict[str, object]] = []
    before = after
    for name in (one for page in store.names() for one in page if one > after and text in one.lower()):
        if rows and (len(rows) == limit or time.monotonic() > end):
            return reply_json({"logs": rows, "next": before})
        before = name
        try:
            found = store.read(name)
        except NoSuchLog:  # it was deleted after it was listed
            continue
        newest = max(found.value.ledgers, default=None)
        rows.append({"log": name, "ledgers": len(found.value.ledgers), "newest": newest,
                     "writers": len(found.value.commits), "createdMs": found.created_ms})  # fmt: skip
    return reply_json({"logs": rows, "next": None})


def log(request: HttpRequest) -> Reply:
    """Return one log: its writers, and its ledgers from position `first` on."""
    name = request.params.get("name", "")
    first, limit = request.number("first", 0), request.number("limit", 100, low=1, high=SHOWN_MAX)
    driver = request.control.metadata
    try:
        found = driver.logs.read(name)
    except NoSuchLog as error:
        raise Refused(404, str(error)) from None
    end = time.monotonic() + TIME_SHARE * request.timeout_s
    rows: list[dict[str, object]] = []
    for ledger in found.value.ledgers[first : first + limit]:
        if rows and time.monotonic() > end:  # each request gets on by one at least
            break
        try:
            rows.append(row_of(ledger, driver.ledgers.read(ledger)))
        except NoSuchLedgerMetadata:
            rows.append({"ledger": ledger, "state": "DELETED"})
    return reply_json(
        {
            "log": name,
            "version": found.version,
            "createdMs": found.created_ms,
            "count": len(found.value.ledgers),
            "writers": {one: commit.batch for one, commit in sorted(found.value.commits.items())},
            "ledgers": rows,
            "next": first + len(rows) if first + len(rows) < len(found.value.ledgers) else None,
        }
    )
