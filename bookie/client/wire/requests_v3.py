"""V3 requests that are not bulk data, as protobuf messages. Values only; any thread."""

from bookie.client.wire.flags import Flags
from bookie.pb import wire_pb2 as pb

HIGH_PRIORITY = 100
"""The priority that Java clients send."""
DEFERRED_SYNC = 1
"""The bit of writeFlags that asks for an acknowledgement before the entry is synced."""
INFO_ALL = pb.GetBookieInfoRequest.TOTAL_DISK_CAPACITY | pb.GetBookieInfoRequest.FREE_DISK_SPACE
LOAD = pb.GetBookieInfoRequest.LOAD


def request(operation: pb.OperationType, transaction: int, flags: int = 0) -> pb.Request:
    """Return a Request that has only its header."""
    message = pb.Request()
    message.header.version = pb.VERSION_THREE
    message.header.operation = operation
    message.header.txnId = transaction
    if flags & Flags.HIGH_PRIORITY:
        message.header.priority = HIGH_PRIORITY
    return message


def add(transaction: int, stored: bytes, master_key: bytes, flags: int, *, deferred_sync: bool) -> pb.Request:
    """Return an ADD_ENTRY request for an entry as stored, whose first 16 bytes are ledger id and entry id."""
    message = request(pb.ADD_ENTRY, transaction, flags)
    body = message.addRequest
    body.ledgerId = int.from_bytes(stored[:8], "big", signed=True)
    body.entryId = int.from_bytes(stored[8:16], "big", signed=True)
    body.masterKey, body.body = master_key, stored
    if deferred_sync:
        body.writeFlags = DEFERRED_SYNC
    if flags & Flags.RECOVERY_ADD:
        body.flag = pb.AddRequest.RECOVERY_ADD
    return message


def read(transaction: int, ledger: int, entry: int, flags: int, master_key: bytes | None) -> pb.Request:
    """Return a READ_ENTRY request. With FENCE the master key is required."""
    message = request(pb.READ_ENTRY, transaction, flags)
    body = message.readRequest
    body.ledgerId, body.entryId = ledger, entry
    if master_key is not None:
        body.masterKey = master_key
    if flags & Flags.FENCE:
        body.flag = pb.ReadRequest.FENCE_LEDGER
    return message


def wait_for_lac(transaction: int, ledger: int, previous_lac: int, timeout_ms: int) -> pb.Request:
    """Return a READ_ENTRY request that waits until the LAC exceeds `previous_lac`, and brings the next entry along."""
    message = read(transaction, ledger, -1, 0, None)
    message.readRequest.previousLAC = previous_lac
    message.readRequest.timeOut = timeout_ms
    message.readRequest.flag = pb.ReadRequest.ENTRY_PIGGYBACK
    return message


def write_lac(transaction: int, ledger: int, lac: int, packet: bytes, master_key: bytes) -> pb.Request:
    """Return a WRITE_LAC request for a packet that was sealed with the ledger's digest."""
    message = request(pb.WRITE_LAC, transaction)
    body = message.writeLacRequest
    body.ledgerId, body.lac, body.masterKey, body.body = ledger, lac, master_key, packet
    return message


def batch_read(
    transaction: int, ledger: int, start: int, count: int, size: int, flags: int, master_key: bytes | None
) -> pb.Request:
    """Return a request of the extension BATCH_READ_ENTRY."""
    message = request(pb.BATCH_READ_ENTRY, transaction, flags)
    body = message.batchReadRequest
    body.ledgerId, body.startEntryId, body.maxCount, body.maxSize = ledger, start, count, size
    if master_key is not None:
        body.masterKey = master_key
    if flags & Flags.FENCE:
        body.flag = pb.ReadRequest.FENCE_LEDGER
    return message


def write_close(transaction: int, ledger: int, master_key: bytes) -> pb.Request:
    """Return a request of the extension WRITE_CLOSE."""
    message = request(pb.WRITE_CLOSE, transaction)
    message.writeCloseRequest.ledgerId, message.writeCloseRequest.masterKey = ledger, master_key
    return message


def read_lac(transaction: int, ledger: int) -> pb.Request:
    message = request(pb.READ_LAC, transaction)
    message.readLacRequest.ledgerId = ledger
    return message


def force(transaction: int, ledger: int) -> pb.Request:
    message = request(pb.FORCE_LEDGER, transaction)
    message.forceLedgerRequest.ledgerId = ledger
    return message


def list_entries(transaction: int, ledger: int) -> pb.Request:
    message = request(pb.GET_LIST_OF_ENTRIES_OF_LEDGER, transaction)
    message.getListOfEntriesOfLedgerRequest.ledgerId = ledger
    return message


def bookie_info(transaction: int, *, load: bool = False) -> pb.Request:
    """Return a GET_BOOKIE_INFO request for capacity and free space, and with the extension BOOKIE_LOAD for the load."""
    message = request(pb.GET_BOOKIE_INFO, transaction)
    message.getBookieInfoRequest.requested = INFO_ALL | LOAD if load else INFO_ALL
    return message


def auth(transaction: int, plugin: str, token: bytes) -> pb.Request:
    message = request(pb.AUTH, transaction)
    message.authRequest.authPluginName, message.authRequest.payload = plugin, token
    return message
