"""GET_LIST_OF_ENTRIES_OF_LEDGER: which entries of a ledger are stored here, at a cost proportional to its runs."""

import logging

from bookie._fast.store.entry_ranges import entry_ranges
from bookie._fast.store.storage import StorageEngine
from bookie.availability import encode, encode_periodic
from bookie.log_throttle import LogThrottle
from bookie.pb import wire_pb2 as wire
from bookie.server.requests import replies

__all__ = ["EntryList"]

OVERHEAD_BYTES = 128
"""More than a frame, a header and the fields around the list need."""

log = logging.getLogger(__name__)
log.addFilter(LogThrottle())  # peers can cause these lines


class EntryList:
    """Answers for `stores`. A list that does not fit into a frame of `frame_bytes_max` is an I/O error."""

    def __init__(self, stores: StorageEngine, frame_bytes_max: int) -> None:
        self._stores = stores
        self._bytes_max = frame_bytes_max - OVERHEAD_BYTES

    def __call__(self, request: wire.Request) -> bytes:
        """Return the response to one request."""
        if not request.HasField("getListOfEntriesOfLedgerRequest"):
            return replies.answer(request, replies.EBADREQ)
        ledger = request.getListOfEntriesOfLedgerRequest.ledgerId
        part = wire.GetListOfEntriesOfLedgerResponse(status=replies.EOK, ledgerId=ledger)
        if not replies.right_version(request):
            part.status = replies.EBADVERSION
        else:
            self._fill(part, ledger)
        return replies.answer(request, part.status, getListOfEntriesOfLedgerResponse=part)

    def _fill(self, part: wire.GetListOfEntriesOfLedgerResponse, ledger: int) -> None:
        try:
            ranges = entry_ranges(self._stores, ledger)
        except OSError as error:
            log.error("the entries of a ledger cannot be listed", extra={"ledger": ledger, "error": str(error)})
            part.status = replies.EIO
            return
        if ranges is None:
            part.status = replies.ENOLEDGER
            return
        encoded = encode(ranges)
        if len(encoded) > self._bytes_max:
            encoded = encode_periodic(ranges)
        if len(encoded) > self._bytes_max:
            log.error("a list of entries does not fit into a frame", extra={"ledger": ledger, "bytes": len(encoded)})
            part.status = replies.EIO
            return
        part.availabilityOfEntriesOfLedger = encoded
