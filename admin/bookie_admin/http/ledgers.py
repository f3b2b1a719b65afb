"""Endpoints about the cluster's ledgers, using its metadata store and the client. Runs on `RequestThreads`."""

import asyncio
import base64
from dataclasses import replace
from typing import Any

from bookie.client.aio import BookKeeper
from bookie.client.entries.verified import Entry
from bookie.client.replication.hosting import Shared
from bookie.errors import NoSuchLedgerMetadata
from bookie.metadata.records.ledger_codec import serialize_ledger
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState
from bookie_admin.bookie_calls import client_settings
from bookie_admin.http.request import HttpRequest, Refused, Reply, reply_json

__all__ = ["delete", "list_ledgers", "metadata", "read", "read_entries"]

LEDGERS_A_PAGE = 100
ENTRIES_A_PAGE = 1000
ANSWER_BYTES_MAX = 16 << 20
JAVA_DIGESTS = {1: "CRC32", 2: "MAC", 3: "CRC32C", 4: "DUMMY"}


def delete(request: HttpRequest) -> Reply:
    """Delete a ledger: its metadata now, its entries with the next garbage collection of each bookie."""
    ledger = request.number("ledger_id")
    request.control.metadata.ledgers.delete(ledger)
    return reply_json(f"Deleted ledger: {ledger}")


def list_ledgers(request: HttpRequest) -> Reply:
    """List the ids of all ledgers; with `print_metadata`, a page of 100 with their metadata."""
    ledgers = request.control.metadata.ledgers
    if not request.wants("print_metadata"):
        return reply_json({str(ledger): None for piece in ledgers.ranges() for ledger in piece})
    page, found, seen = request.number("page", 0), {}, 0
    # Pages are cut as by Apache BookKeeper: the first one has 99.
    first, last = (max((page - 1) * LEDGERS_A_PAGE - 1, 0), page * LEDGERS_A_PAGE - 1) if page else (0, 2**63)
    for piece in ledgers.ranges():
        chosen = piece[max(first - seen, 0) : max(last - seen, 0)]
        seen += len(piece)
        for ledger in chosen:
            try:
                value = ledgers.read(ledger)
            except NoSuchLedgerMetadata:  # the ledger was deleted after it was listed
                continue
            found[str(ledger)] = (
                as_java(ledger, value.value, value.created_ms) if request.wants("decode_meta") else stored(value.value)
            )
        if seen >= last:
            break
    return reply_json(found)


def metadata(request: HttpRequest) -> Reply:
    """Show the metadata of a ledger in Apache BookKeeper's format."""
    ledger = request.number("ledger_id")
    found = request.control.metadata.ledgers.read(ledger)
    return reply_json({str(ledger): as_java(ledger, found.value, found.created_ms)})


def read(request: HttpRequest) -> Reply:
    """Show the payloads of entries as ASCII, at most 1000 entries a page."""
    ledger = request.number("ledger_id")
    first, last = request.number("start_entry_id", 0), request.number("end_entry_id", -1, low=-1)
    page = request.number("page", -1, low=-1, high=2**40)
    found: dict[str, str] = {}
    if page > 0:
        begin, end = (page - 1) * ENTRIES_A_PAGE, page * ENTRIES_A_PAGE - 1
        first, last = max(first, begin), end if last == -1 else min(last, end)
        found["Entries for page: "] = str(page)
    if last != -1 and first > last:
        text = f"parameter for start_entry_id: {first} and end_entry_id: {last} conflict with page={page}"
        raise Refused(500, text)
    for entry in read_entries(request, ledger, first, None if last == -1 else last, ENTRIES_A_PAGE):
        found[str(entry.id)] = bytes(entry.data).decode("ascii", "replace")
    return reply_json(found)


def read_entries(request: HttpRequest, ledger: int, first: int, last: int | None, count_max: int) -> list[Entry]:
    """Read and verify entries as a client does, without fencing the ledger; at most as many as fit in a response."""
    return asyncio.run(_read(request, ledger, first, last, count_max))


async def _read(request: HttpRequest, ledger: int, first: int, last: int | None, count_max: int) -> list[Entry]:
    entries: list[Entry] = []
    size = 0
    settings = {**client_settings(request.control.client_keys), "readEntryTimeoutSec": request.timeout_s}
    async with (
        BookKeeper(Shared(request.control.metadata), **settings) as bk,
        bk.open_ledger(ledger, password=None, recovery=False) as handle,
    ):
        end = handle.last_add_confirmed if last is None else min(last, handle.last_add_confirmed)
        if first > end:
            return entries
        async for batch in handle.batches(first, min(end, first + count_max - 1)):
            for entry in batch:
                size += len(entry.data)
                if size > ANSWER_BYTES_MAX and entries:
                    return entries
                entries.append(Entry(entry.id, memoryview(bytes(entry.data))))
    return entries


def stored(value: LedgerMetadata) -> str:
    """Return the stored form of ledger metadata as text, without the password."""
    return serialize_ledger(replace(value, password=b"")).decode("utf-8", "replace")


def as_java(ledger: int, value: LedgerMetadata, created_ms: int) -> dict[str, Any]:
    """Return ledger metadata as Apache BookKeeper's JSON object, without the password."""
    segments = {str(one.first_entry): [{"id": bookie} for bookie in one.bookies] for one in value.segments}
    return {
        "ledgerId": ledger,
        "metadataFormatVersion": value.format_version,
        "ensembleSize": value.ensemble_size,
        "writeQuorumSize": value.write_quorum,
        "ackQuorumSize": value.ack_quorum,
        "state": value.state.name,
        "length": value.length,
        "lastEntryId": value.last_entry,
        "ctime": value.ctime_ms if value.ctime_ms is not None else created_ms,
        "digestType": JAVA_DIGESTS[value.digest_type] if value.digest_type is not None else None,
        "password": "",
        "customMetadata": {key: base64.b64encode(one).decode() for key, one in value.custom.items()},
        "ctoken": value.token,
        "closed": value.state is LedgerState.CLOSED,
        "allEnsembles": segments,
    }
