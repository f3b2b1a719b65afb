"""The public exceptions, and the one table that maps them to the codes of the wire protocols and of the Java client.

Every error is a `BookKeeperError` whose text is one line that names the subject, the offending value and the remedy.
`code` is the Java client's number for the condition, `retriable` says whether the same call may succeed later, and
`exit_code` is the status with which a command exits when it ends with this error. The docstring of a class is shown
to users as part of error texts, so it is one sentence. The module may be used from any thread.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BookKeeperError(Exception):
    """An error for which no subclass exists; the base class of all errors of bookie."""

    code = -999
    retriable = False
    exit_code = 2


# Operations on ledgers and bookies, as a client sees them.


class ReadError(BookKeeperError):
    """The read failed for a reason other than the entry being absent."""

    code = -1
    retriable = True


class QuorumError(BookKeeperError):
    """The quorum sizes violate ack quorum <= write quorum <= ensemble size."""

    code = -2


class NoBookieAvailable(BookKeeperError):
    """No bookie is registered."""

    code = -3
    retriable = True


class DigestNotInitialized(BookKeeperError):
    """The ledger has no digest type."""

    code = -4


class DigestMismatch(BookKeeperError):
    """The entry does not carry a valid digest from the ledger's writer."""

    code = -5


class NotEnoughBookies(BookKeeperError):
    """There are fewer usable bookies than the ensemble needs."""

    code = -6
    retriable = True


class NoSuchLedger(BookKeeperError):
    """The bookie has no data of this ledger."""

    code = -7


class BookieUnavailable(BookKeeperError):
    """The connection to the bookie was refused or lost."""

    code = -8
    retriable = True


class ZooKeeperError(BookKeeperError):
    """ZooKeeper refused the operation, or did not answer in time."""

    code = -9
    retriable = True
    exit_code = 1


class LedgerRecoveryError(BookKeeperError):
    """Too few bookies answered to recover and close the ledger."""

    code = -10
    retriable = True


class LedgerClosed(BookKeeperError):
    """The ledger is closed; no more entries can be added."""

    code = -11


class WriteError(BookKeeperError):
    """The add failed for a reason that no other error describes."""

    code = -12


class NoSuchEntry(BookKeeperError):
    """The bookie does not hold this entry."""

    code = -13


class IncorrectParameter(BookKeeperError):
    """An argument is outside its allowed range."""

    code = -14


class Interrupted(BookKeeperError):
    """The waiting call was interrupted."""

    code = -15


class ProtocolVersionMismatch(BookKeeperError):
    """The peer does not support this protocol version."""

    code = -16


class MetadataVersionConflict(BookKeeperError):
    """Another client changed the metadata since it was read; read it again and retry."""

    code = -17


class MetadataStoreError(BookKeeperError):
    """The metadata store refused the operation, or did not answer in time."""

    code = -18
    retriable = True
    exit_code = 1


class ClientClosed(BookKeeperError):
    """The client was closed."""

    code = -19


class LedgerExists(BookKeeperError):
    """A ledger with this id already exists."""

    code = -20


class AddQuorumTimeout(BookKeeperError):
    """The entry was not acknowledged by an ack quorum in time."""

    code = -21


class DuplicateEntryId(BookKeeperError):
    """An entry with this id was already added."""

    code = -22


class RequestTimeout(BookKeeperError, TimeoutError):
    """The request was not answered within the client's time limit; it may have been executed."""

    code = -23
    retriable = True


class SecurityError(BookKeeperError):
    """Authentication or the TLS handshake failed."""

    code = -24


class NoSuchLedgerMetadata(BookKeeperError):
    """The metadata store has no ledger with this id."""

    code = -25


class IllegalOperation(BookKeeperError):
    """The operation is not allowed in the current state."""

    code = -100


class LedgerFenced(BookKeeperError):
    """Another client is recovering or has recovered the ledger; this writer must stop."""

    code = -101


class UnauthorizedAccess(BookKeeperError):
    """The ledger password is incorrect, or the client is not authenticated."""

    code = -102


class UnclosedFragment(BookKeeperError):
    """The last fragment of a ledger that is still open cannot be replicated."""

    code = -103


class BookieReadOnly(BookKeeperError):
    """The bookie is read-only; write the entry to another one."""

    code = -104
    retriable = True


class TooManyRequests(BookKeeperError):
    """A queue or cache of the bookie or of the client is full."""

    code = -105
    retriable = True


class LedgerIdOverflow(BookKeeperError):
    """All ledger ids of this kind are used up."""

    code = -106


class MetadataSerializationError(BookKeeperError):
    """A value in the metadata store cannot be parsed."""

    code = -107
    exit_code = 1


class DataUnknown(BookKeeperError):
    """The bookie may have lost data of this ledger and cannot tell whether it held the entry."""

    code = -108


class ReplicationError(BookKeeperError):
    """The re-replication failed."""

    code = -200


# Errors of a bookie process itself and of tools. They never cross the wire.


class StartRefused(BookKeeperError):
    """The bookie refused to start, and changed nothing on disk."""

    exit_code = 1


class ConfigurationError(StartRefused):
    """A setting is unknown, missing, out of its range, or contradicts another one."""


class CookieError(StartRefused):
    """The directories, the metadata store and the configuration do not belong to the same bookie."""


class ClusterNotInitialized(StartRefused):
    """The metadata store holds no cluster under the configured root path."""


class NoSuchLog(BookKeeperError):
    """The metadata store has no log with this name."""


class LogExists(BookKeeperError):
    """A log with this name already exists."""


class LogTooLarge(BookKeeperError):
    """The list of a log's ledgers does not fit into one value of the metadata store."""


class ToolRefused(BookKeeperError):
    """An operator's tool refused to continue, and changed nothing."""

    exit_code = 1


class BookieAlreadyRegistered(BookKeeperError):
    """Another process is registered under this bookie id."""

    code = -18
    exit_code = 4


class MetadataSessionLost(BookKeeperError):
    """The session with the metadata store expired, and no new one could be established in time."""

    code = -18
    exit_code = 3


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the table: a condition and its number in each protocol, or None where a protocol has no number for
    it.
    """

    name: str
    v2: int | None
    v3: int | None
    client: int
    error: type[BookKeeperError] | None
    """The exception class, or None if it depends on the operation (ReadError, WriteError or SecurityError)."""


OK, OPERATION_DEFAULT = 0, -999

CODES = (
    Code("EOK", 0, 0, OK, None),
    Code("ENOLEDGER", 1, 402, -7, NoSuchLedger),
    Code("ENOENTRY", 2, 403, -13, NoSuchEntry),
    Code("EBADREQ", 100, 404, OPERATION_DEFAULT, None),
    Code("EIO", 101, 501, OPERATION_DEFAULT, None),
    Code("EUA", 102, 502, -102, UnauthorizedAccess),
    Code("EBADVERSION", 103, 503, -16, ProtocolVersionMismatch),
    Code("EFENCED", 104, 504, -101, LedgerFenced),
    Code("EREADONLY", 105, 505, -104, BookieReadOnly),
    Code("ETOOMANYREQUESTS", 106, 506, -105, TooManyRequests),
    # Java bookies send 107, but Java clients drop the connection that carries it: we understand it and send EIO on V2.
    Code("EUNKNOWNLEDGERSTATE", 107, 507, -108, DataUnknown),
)

CLIENT_ERRORS = (
    ReadError, QuorumError, NoBookieAvailable, DigestNotInitialized, DigestMismatch, NotEnoughBookies, NoSuchLedger,
    BookieUnavailable, ZooKeeperError, LedgerRecoveryError, LedgerClosed, WriteError, NoSuchEntry, IncorrectParameter,
    Interrupted, ProtocolVersionMismatch, MetadataVersionConflict, MetadataStoreError, ClientClosed, LedgerExists,
    AddQuorumTimeout, DuplicateEntryId, RequestTimeout, SecurityError, NoSuchLedgerMetadata, IllegalOperation,
    LedgerFenced, UnauthorizedAccess, UnclosedFragment, BookieReadOnly, TooManyRequests, LedgerIdOverflow,
    MetadataSerializationError, DataUnknown, ReplicationError,
)  # fmt: skip


def error_from_v2(rc: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
    """Return the exception class for a V2 return code.

    Args:
        rc: The return code of a V2 response.
        default: The class for codes whose meaning depends on the operation, such as ReadError or WriteError.

    Returns:
        The exception class, or None for EOK.

    Raises:
        ProtocolVersionMismatch: The number is not in the table; the peer speaks another protocol.
    """
    return _resolve(_BY_V2, rc, default, "V2 return code")


def error_from_v3(status: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
    """Return the exception class for a V3 status code.

    Args:
        status: The status of a V3 response.
        default: The class for codes whose meaning depends on the operation, such as ReadError or WriteError.

    Returns:
        The exception class, or None for EOK.

    Raises:
        ProtocolVersionMismatch: The number is not in the table; the peer speaks another protocol.
    """
    return _resolve(_BY_V3, status, default, "V3 status")


def error_from_client_code(code: int) -> type[BookKeeperError]:
    """Return the exception class for one of the Java client's codes.

    Args:
        code: The code.

    Returns:
        The exception class; `BookKeeperError` itself for an unknown code.
    """
    return _BY_CLIENT.get(code, BookKeeperError)


def _resolve(
    table: dict[int, Code], number: int, default: type[BookKeeperError], what: str
) -> type[BookKeeperError] | None:
    row = table.get(number)
    if row is None:
        raise ProtocolVersionMismatch(f"{what} {number} is unknown: the peer speaks another protocol")
    if row.client == OK:
        return None
    return row.error or default


def _unique(pairs: Iterable[tuple[K | None, V]], what: str) -> dict[K, V]:
    table: dict[K, V] = {}
    for key, value in pairs:
        if key is None:
            continue
        if key in table:
            raise ImportError(f"bookie.errors: {what} {key} is listed twice, for {table[key]} and {value}")
        table[key] = value
    return table


def _render() -> str:
    def cell(number: int | None) -> str:
        return "-" if number is None else str(number)

    lines = [f"{'name':20} {'V2':>4} {'V3':>4} {'client':>8}  error"]
    for row in CODES:
        client = "by call" if row.client == OPERATION_DEFAULT else str(row.client)
        error = row.error.__name__ if row.error else "-"
        lines.append(f"{row.name:20} {cell(row.v2):>4} {cell(row.v3):>4} {client:>8}  {error}")
    on_the_wire = {row.error for row in CODES}
    for other in CLIENT_ERRORS:
        if other not in on_the_wire:
            lines.append(f"{'-':20} {'-':>4} {'-':>4} {other.code:>8}  {other.__name__}")
    return "\n".join(lines)


_BY_V2 = _unique(((row.v2, row) for row in CODES), "V2 code")
_BY_V3 = _unique(((row.v3, row) for row in CODES), "V3 status")
_BY_CLIENT = _unique(((error.code, error) for error in CLIENT_ERRORS), "client code")
_unique(((row.error, row.name) for row in CODES), "error class")

__doc__ = f"{__doc__}\n{_render()}\n"
