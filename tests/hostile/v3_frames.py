"""A valid V3 request for each operation, for tests that try all of them."""

import struct
from typing import Any

from bookie.pb import wire_pb2 as wire
from tests.hostile.peer import KEY, entry_of

PARTS: dict[int, dict[str, Any]] = {
    wire.READ_ENTRY: {"readRequest": wire.ReadRequest(ledgerId=1, entryId=0)},
    wire.ADD_ENTRY: {"addRequest": wire.AddRequest(ledgerId=1, entryId=0, masterKey=KEY, body=entry_of(1, 0))},
    wire.RANGE_READ_ENTRY: {},
    wire.RANGE_ADD_ENTRY: {},
    wire.AUTH: {"authRequest": wire.AuthMessage(authPluginName="none of ours", payload=b"")},
    wire.WRITE_LAC: {
        "writeLacRequest": wire.WriteLacRequest(ledgerId=1, lac=0, masterKey=KEY, body=struct.pack(">qq", 1, 0))
    },
    wire.READ_LAC: {"readLacRequest": wire.ReadLacRequest(ledgerId=1)},
    wire.GET_BOOKIE_INFO: {"getBookieInfoRequest": wire.GetBookieInfoRequest(requested=3)},
    wire.START_TLS: {"startTLSRequest": wire.StartTLSRequest()},
    wire.FORCE_LEDGER: {"forceLedgerRequest": wire.ForceLedgerRequest(ledgerId=1)},
    wire.GET_LIST_OF_ENTRIES_OF_LEDGER: {
        "getListOfEntriesOfLedgerRequest": wire.GetListOfEntriesOfLedgerRequest(ledgerId=1)
    },
    wire.BATCH_READ_ENTRY: {
        "batchReadRequest": wire.BatchReadRequest(ledgerId=1, startEntryId=0, maxCount=1, maxSize=1 << 20)
    },
    wire.WRITE_CLOSE: {"writeCloseRequest": wire.WriteCloseRequest(ledgerId=1, masterKey=KEY)},
}
"""The message of a valid request, by operation."""


def request(
    operation: int, *, txn: int = 1, priority: int | None = None, version: int = wire.VERSION_THREE, **part: Any
) -> wire.Request:
    """Return a request; without `part` with the message in PARTS."""
    header = wire.BKPacketHeader(version=version, operation=operation, txnId=txn, priority=priority)  # type: ignore[arg-type]
    return wire.Request(header=header, **(part or PARTS[operation]))
