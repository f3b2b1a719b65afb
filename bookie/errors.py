"""What can go wrong, as exceptions, and THE table between exceptions and the codes of the wire and of the Java client.

Any thread. Every error is a `BookKeeperError`: its text is one line that names the thing, the value and the remedy;
`code` is the Java client's number, `retriable` says whether the same call may succeed later, `exit_code` is what a
command ends with when the error ends it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BookKeeperError(Exception):
    """The root of the tree: something that no class below names."""

    code = -999
    retriable = False
    exit_code = 2


# Operations on ledgers and bookies, as a client sees them.


class ReadError(BookKeeperError):
    """A read failed for a reason that is not the entry's absence."""

    code = -1
    retriable = True


class QuorumError(BookKeeperError):
    """The quorum sizes contradict each other: ack quorum <= write quorum <= ensemble."""

    code = -2


class NoBookieAvailable(BookKeeperError):
    """No bookie is registered."""

    code = -3
    retriable = True


class DigestNotInitialized(BookKeeperError):
    """The ledger has no digest type."""

    code = -4


class DigestMismatch(BookKeeperError):
    """An entry's bytes do not carry the digest that the ledger's writer put there."""

    code = -5


class NotEnoughBookies(BookKeeperError):
    """Fewer bookies than the ensemble needs."""

    code = -6
    retriable = True


class NoSuchLedger(BookKeeperError):
    """The bookie was asked, looked, and does not know the ledger."""

    code = -7


class BookieUnavailable(BookKeeperError):
    """The connection to the bookie was refused or lost."""

    code = -8
    retriable = True


class ZooKeeperError(BookKeeperError):
    """ZooKeeper refused, or did not answer in time."""

    code = -9
    retriable = True
    exit_code = 1


class LedgerRecoveryError(BookKeeperError):
    """Too few bookies answered to close the ledger."""

    code = -10
    retriable = True


class LedgerClosed(BookKeeperError):
    """The ledger is closed; nothing can be added."""

    code = -11


class WriteError(BookKeeperError):
    """An add failed for a reason that no other class names."""

    code = -12


class NoSuchEntry(BookKeeperError):
    """The bookie was asked, looked, and does not hold the entry."""

    code = -13


class IncorrectParameter(BookKeeperError):
    """An argument is outside its range."""

    code = -14


class Interrupted(BookKeeperError):
    """The waiting caller was told to stop."""

    code = -15


class ProtocolVersionMismatch(BookKeeperError):
    """The peer does not speak this protocol version."""

    code = -16


class MetadataVersionConflict(BookKeeperError):
    """The metadata was changed by somebody else since it was read: read anew and decide again."""

    code = -17


class MetadataStoreError(BookKeeperError):
    """The metadata store refused, or did not answer in time."""

    code = -18
    retriable = True
    exit_code = 1


class ClientClosed(BookKeeperError):
    """The client was closed."""

    code = -19


class LedgerExists(BookKeeperError):
    """A ledger of that id exists already."""

    code = -20


class AddQuorumTimeout(BookKeeperError):
    """The ack quorum did not answer in time."""

    code = -21


class DuplicateEntryId(BookKeeperError):
    """The entry id was added already."""

    code = -22


class RequestTimeout(BookKeeperError):
    """No answer within the client's time limit; the request may have been done."""

    code = -23
    retriable = True


class SecurityError(BookKeeperError):
    """Authentication or the TLS handshake failed."""

    code = -24


class NoSuchLedgerMetadata(BookKeeperError):
    """The metadata store was asked, looked, and does not know the ledger."""

    code = -25


class IllegalOperation(BookKeeperError):
    """The operation is not allowed in this state."""

    code = -100


class LedgerFenced(BookKeeperError):
    """Somebody recovers or has recovered the ledger; this writer must stop."""

    code = -101


class UnauthorizedAccess(BookKeeperError):
    """Wrong ledger password, or not authenticated."""

    code = -102


class UnclosedFragment(BookKeeperError):
    """The last fragment of an open ledger cannot be replicated."""

    code = -103


class BookieReadOnly(BookKeeperError):
    """The bookie is read-only; another one must take the entry."""

    code = -104
    retriable = True


class TooManyRequests(BookKeeperError):
    """A queue or a cache of the bookie is full."""

    code = -105
    retriable = True


class LedgerIdOverflow(BookKeeperError):
    """No ledger id of this kind is left."""

    code = -106


class MetadataSerializationError(BookKeeperError):
    """Bytes in the metadata store violate their format."""

    code = -107
    exit_code = 1


class DataUnknown(BookKeeperError):
    """The bookie lost data of this ledger and cannot say whether it held the entry."""

    code = -108


class ReplicationError(BookKeeperError):
    """Re-replication failed."""

    code = -200


# A bookie's own start and life. They never cross the wire.


class StartRefused(BookKeeperError):
    """The bookie does not start, and has changed nothing on disk."""

    exit_code = 1


class ConfigurationError(StartRefused):
    """A setting is unknown, missing, or contradicts another."""


class CookieError(StartRefused):
    """The directories, the metadata store and the configuration are not of one bookie."""


class ClusterNotInitialized(StartRefused):
    """The metadata store holds no cluster under the configured root."""


class NoSuchLog(BookKeeperError):
    """The metadata store was asked, looked, and does not know the log."""


class LogExists(BookKeeperError):
    """A log of that name exists already."""


class LogTooLarge(BookKeeperError):
    """The list of a log's ledgers does not fit into one value of the metadata store."""


class ToolRefused(BookKeeperError):
    """A tool of the operator does not go on, and has changed nothing."""

    exit_code = 1


class BookieAlreadyRegistered(BookKeeperError):
    """Another process is registered under this bookie id."""

    code = -18
    exit_code = 4


class MetadataSessionLost(BookKeeperError):
    """The session with the metadata store expired and a new one could not be had in time."""

    code = -18
    exit_code = 3


@dataclass(frozen=True, slots=True)
class Code:
    """One condition in its three numberings. None: the protocol has no number for it."""

    name: str
    v2: int | None
    v3: int | None
    client: int
    error: type[BookKeeperError] | None
    """None where the answer depends on the operation: ReadError, WriteError or SecurityError."""


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
    """The class that a V2 return code means, None for EOK; `default` is the operation's own (ReadError, WriteError).

    A number outside the table raises ProtocolVersionMismatch: the peer is not one we can talk to.
    """
    return _resolve(_BY_V2, rc, default, "V2 return code")


def error_from_v3(status: int, default: type[BookKeeperError]) -> type[BookKeeperError] | None:
    """The class that a V3 status means, None for EOK. See `error_from_v2`."""
    return _resolve(_BY_V3, status, default, "V3 status")


def error_from_client_code(code: int) -> type[BookKeeperError]:
    """The class of one of the Java client's codes; `BookKeeperError` itself for an unknown number."""
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
            raise ImportError(f"bookie.errors: {what} {key} stands twice, for {table[key]} and {value}")
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
