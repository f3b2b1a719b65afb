"""The operations of channels in both protocols, for callers that need not know which one a channel speaks."""

import struct
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from bookie.client.channel.batches import batches
from bookie.client.channel.connection import Connection
from bookie.client.channel.reply import Reply
from bookie.client.channel.stream import AddStream
from bookie.client.channel.threaded import Limits, ThreadedConnection
from bookie.client.entries.batch import StoredBatch
from bookie.client.entries.digest import Digest
from bookie.client.wire.flags import LAST_ENTRY, MIB, Flags
from bookie.client.wire.request import Request
from bookie.client.wire.security import Security, authenticate
from bookie.client.wire.v2 import WireV2
from bookie.client.wire.v3 import WireV3
from bookie.errors import IncorrectParameter, NoSuchEntry

ENTRY_NAME = struct.Struct(">qq")


class BookieChannel:
    """The operations of one bookie over one connection: a `Channel` (V2) or a `ChannelV3`.

    Open it with `connect`; end it with `close`, or use it as a context manager. Any number of threads may call. Every
    call may raise BookieUnavailable, RequestTimeout, ClientClosed or TooManyRequests besides the errors that it
    documents.

    Attributes:
        wire: The protocol: it makes the requests and interprets the responses.
        connection: The connection that carries them.
    """

    protocol: ClassVar[type[WireV2 | WireV3]]

    def __init__(self, connection: Connection, wire: WireV2 | WireV3) -> None:
        self.connection = connection
        self.wire = wire

    @classmethod
    def connect(
        cls,
        host: str,
        port: int,
        *,
        timeout_s: float = 10.0,
        connect_timeout_s: float = 5.0,
        frame_bytes_max: int = 5 * MIB,
        outstanding_max: int = 10_000,
        security: Security | None = None,
    ) -> Self:
        """Connect, and encrypt and authenticate as `security` says.

        Args:
            host: The host name or address of the bookie.
            port: The port of the bookie.
            timeout_s: The time limit of each request, in seconds.
            connect_timeout_s: The time limit for establishing the connection, in seconds.
            frame_bytes_max: The largest frame that is sent or accepted, in bytes, at least 128.
            outstanding_max: The highest number of unanswered requests; when it is reached, callers wait.
            security: How to encrypt and authenticate; None means neither.

        Returns:
            The open channel.

        Raises:
            BookieUnavailable: Nothing accepts connections at the address.
            SecurityError: The TLS handshake failed, or the bookie does not support TLS.
            UnauthorizedAccess: The bookie or the client rejected the other's authentication.
            IncorrectParameter: `frame_bytes_max` is too small.
        """
        if frame_bytes_max < 128:
            raise IncorrectParameter(f"frame_bytes_max is {frame_bytes_max}; give at least 128")
        security = security or Security()
        wire = cls.protocol(frame_bytes_max)
        limits = Limits(timeout_s, connect_timeout_s, outstanding_max)
        channel = cls(ThreadedConnection.connect(host, port, wire, limits, security), wire)
        if security.auth is not None:
            try:
                authenticate(security.auth, host, channel.address, channel.auth)
            except BaseException:
                channel.close()
                raise
        return channel

    def close(self) -> None:
        """Fail all outstanding requests with ClientClosed, and close the connection. Further calls do nothing."""
        self.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The address of the bookie, as host:port."""
        return self.connection.address

    @property
    def timeout_s(self) -> float:
        """The time limit of each request, in seconds. It can be set, for the requests that follow."""
        return self.connection.timeout_s

    @timeout_s.setter
    def timeout_s(self, seconds: float) -> None:
        self.connection.timeout_s = seconds

    @property
    def frame_bytes_max(self) -> int:
        """The largest frame that is sent or accepted, in bytes."""
        return self.wire.frame_bytes_max

    def auth(self, plugin: str, token: bytes) -> tuple[str, bytes]:
        """Send a token of an authentication provider to the bookie.

        Args:
            plugin: The plugin name of the provider.
            token: The token.

        Returns:
            The bookie's plugin name and its token.

        Raises:
            UnauthorizedAccess: The bookie rejected the token.
        """
        answer: tuple[str, bytes] = self.connection.submit(self.wire.auth(plugin, token, self.timeout_s)).result()
        return answer

    # --- adds ---------------------------------------------------------------------------------------------------------

    def add(
        self, ledger: int, entry: int, payload: Buffer, *, digest: Digest, lac: int, length: int, flags: int = 0
    ) -> None:
        """Store an entry, and return when it is durable.

        Args:
            ledger: The id of the ledger.
            entry: The id of the entry.
            payload: The payload.
            digest: The digest of the ledger.
            lac: The LAC to store with the entry.
            length: Payload bytes of the ledger up to and including this entry.
            flags: Bits of `Flags`. RECOVERY_ADD lets the entry through although the ledger is fenced.

        Raises:
            LedgerFenced: The ledger is fenced.
            UnauthorizedAccess: The master key is wrong.
            BookieReadOnly: The bookie is read-only.
            WriteError: The bookie failed to store the entry.
        """
        self.add_async(ledger, entry, payload, digest=digest, lac=lac, length=length, flags=flags).result()

    def add_async(
        self, ledger: int, entry: int, payload: Buffer, *, digest: Digest, lac: int, length: int, flags: int = 0
    ) -> Reply[None]:
        """Store an entry like `add`, without waiting for the response.

        Args:
            ledger: See `add`, as for all further arguments.
            entry: See `add`.
            payload: See `add`.
            digest: See `add`.
            lac: See `add`.
            length: See `add`.
            flags: See `add`.

        Returns:
            The pending reply; its `result` returns None or raises an error of `add`.
        """
        stored = digest.seal(ledger, entry, payload, lac=lac, length=length)
        return self.add_stored_async(stored, digest.master_key, flags=flags)

    def add_stored_async(self, stored: Buffer, master_key: bytes, *, flags: int = 0) -> Reply[None]:
        """Store an entry that already has its header and digest, such as a copy from another replica.

        Args:
            stored: The entry as stored.
            master_key: The ledger's master key.
            flags: Bits of `Flags`.

        Returns:
            The pending reply; its `result` returns None or raises an error of `add`.
        """
        return self.connection.submit(self.wire.add(*named(stored), stored, master_key, flags, self.timeout_s))

    def add_stream(
        self,
        ledger: int,
        first: int,
        *,
        digest: Digest,
        lac: int = -1,
        length: int = 0,
        outstanding: int = 10_000,
        flags: int = 0,
    ) -> AddStream:
        """Open a stream of adds. With V2 there can be one stream per ledger at a time.

        Args:
            ledger: The id of the ledger.
            first: The id of the first entry.
            digest: The digest of the ledger.
            lac: The LAC of the ledger before `first`.
            length: Payload bytes of the ledger before `first`.
            outstanding: The highest number of unanswered adds.
            flags: Bits of `Flags`.

        Returns:
            The stream, which is a context manager.

        Raises:
            IllegalOperation: The protocol is V2, and the ledger has another stream on this channel.
            IncorrectParameter: An argument is outside its range.
            RequestTimeout: The protocol is V2, and earlier adds of the ledger are still unanswered.
        """
        return self._add_stream(ledger, first, outstanding, digest, flags, lac=lac, length=length)

    def _add_stream(
        self,
        ledger: int,
        first: int,
        outstanding: int,
        digest: Digest,
        flags: int,
        *,
        lac: int,
        length: int,
        deferred_sync: bool = False,
    ) -> AddStream:
        try:
            framer = self.wire.framer(digest, ledger, flags, deferred_sync=deferred_sync)
            window = self.connection.open_stream(ledger, first, outstanding)
        except (ValueError, OverflowError) as error:
            raise IncorrectParameter(f"add stream to ledger {ledger}: {error}") from error
        return AddStream(self.connection, self.wire, window, framer, lac=lac, length=length)

    def add_batch(
        self,
        ledger: int,
        first: int,
        payloads: Buffer,
        offsets: NDArray[np.int64],
        *,
        digest: Digest,
        lac: int = -1,
        length: int = 0,
        outstanding: int = 10_000,
    ) -> AddStream:
        """Store many entries, and wait until all of them are durable.

        Args:
            ledger: The id of the ledger.
            first: The id of the first entry.
            payloads: The payloads one after the other.
            offsets: int64, shape (n + 1,): payload k is payloads[offsets[k]:offsets[k + 1]], and becomes entry first
                + k.
            digest: The digest of the ledger.
            lac: The LAC of the ledger before `first`.
            length: Payload bytes of the ledger before `first`.
            outstanding: The highest number of unanswered adds.

        Returns:
            The finished stream.

        Raises:
            BookKeeperError: The error of an entry that was refused; `add` lists the errors.
        """
        with self.add_stream(ledger, first, digest=digest, lac=lac, length=length, outstanding=outstanding) as stream:
            stream.append(payloads, offsets)
        return stream

    # --- reads --------------------------------------------------------------------------------------------------------

    def read(self, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None) -> bytes:
        """Read an entry as stored; `Digest.open` verifies it.

        Args:
            ledger: The id of the ledger.
            entry: The id of the entry; -1 means the last one that the bookie holds.
            flags: Bits of `Flags`. FENCE fences the ledger, and needs the master key.
            master_key: The ledger's master key.

        Returns:
            The entry with its header and digest.

        Raises:
            NoSuchLedger: The bookie has no data of this ledger.
            NoSuchEntry: The bookie does not hold the entry.
            ReadError: The bookie failed to read the entry.
        """
        return self.read_async(ledger, entry, flags=flags, master_key=master_key).result()

    def read_async(self, ledger: int, entry: int, *, flags: int = 0, master_key: bytes | None = None) -> Reply[bytes]:
        """Read an entry like `read`, without waiting for the response.

        Args:
            ledger: See `read`, as for all further arguments.
            entry: See `read`.
            flags: See `read`.
            master_key: See `read`.

        Returns:
            The pending reply; its `result` returns the entry or raises an error of `read`.
        """
        request = self.wire.read(ledger, entry, flags, master_key, self.timeout_s)
        request.decode = self.wire.stored
        return self.connection.submit(request)

    def read_last(self, ledger: int) -> bytes:
        """Read the entry with the highest id that the bookie holds, as stored.

        Args:
            ledger: The id of the ledger.

        Returns:
            The entry with its header and digest.

        Raises:
            NoSuchLedger: The bookie has no data of this ledger.
            NoSuchEntry: The bookie holds no entry of the ledger.
            ReadError: The bookie failed to read the entry.
        """
        return self.read(ledger, LAST_ENTRY)

    def fence(self, ledger: int, master_key: bytes) -> bytes | None:
        """Fence a ledger: the bookie refuses all further adds except recovery adds.

        Args:
            ledger: The id of the ledger.
            master_key: The ledger's master key.

        Returns:
            The last entry as stored, or None if the bookie holds none.

        Raises:
            UnauthorizedAccess: The master key is wrong.
            ReadError: The bookie failed to fence the ledger or to read the entry.
        """
        try:
            return self.read(ledger, LAST_ENTRY, flags=Flags.FENCE, master_key=master_key)
        except NoSuchEntry:
            return None

    def batch_read(
        self,
        ledger: int,
        start: int,
        max_count: int = 0,
        max_size: int = MIB,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> StoredBatch:
        """Read consecutive entries as stored, one or more.

        Args:
            ledger: The id of the ledger.
            start: The id of the first entry.
            max_count: The highest number of entries; 0 or less means no limit.
            max_size: The highest size of the response in bytes. The first entry is always returned.
            flags: Bits of `Flags`. FENCE fences the ledger, and needs the master key.
            master_key: The ledger's master key.

        Returns:
            The entries; call `StoredBatch.verify` on them.

        Raises:
            NoSuchLedger: The bookie has no data of this ledger.
            NoSuchEntry: The bookie does not hold the first entry.
            ReadError: The bookie failed to read the first entry.
        """
        return self.batch_read_async(ledger, start, max_count, max_size, flags=flags, master_key=master_key).result()

    def batch_read_async(
        self,
        ledger: int,
        start: int,
        max_count: int = 0,
        max_size: int = MIB,
        *,
        flags: int = 0,
        master_key: bytes | None = None,
    ) -> Reply[StoredBatch]:
        """Read consecutive entries like `batch_read`, without waiting for the response.

        Args:
            ledger: See `batch_read`, as for all further arguments.
            start: See `batch_read`.
            max_count: See `batch_read`.
            max_size: See `batch_read`.
            flags: See `batch_read`.
            master_key: See `batch_read`.

        Returns:
            The pending reply; its `result` returns the entries or raises an error of `batch_read`.
        """
        return self.connection.submit(self._batch_read(ledger, start, max_count, max_size, flags, master_key))

    def _batch_read(
        self, ledger: int, start: int, max_count: int, max_size: int, flags: int, master_key: bytes | None
    ) -> Request:
        size = min(max_size, self.frame_bytes_max)
        return self.wire.batch_read(ledger, start, max_count, size, flags, master_key, self.timeout_s)

    def batch_read_all(
        self, ledger: int, first: int, last: int, *, max_count: int = 1000, max_size: int = MIB, in_flight: int = 4
    ) -> Iterator[StoredBatch]:
        """Yield all entries of a range in order, with several batch reads in flight.

        Args:
            ledger: The id of the ledger.
            first: The id of the first entry.
            last: The id of the last entry, inclusive.
            max_count: The highest number of entries of one request, at least 1.
            max_size: The highest size of one response in bytes.
            in_flight: The number of requests in flight, at least 1.

        Raises:
            NoSuchEntry: An entry of the range is missing.
            BookKeeperError: Any other error of `batch_read`.
        """
        return batches(
            lambda start, count: self.batch_read_async(ledger, start, count, max_size),
            range(first, last + 1),
            max_count=max_count,
            in_flight=in_flight,
        )


def named(stored: Buffer) -> tuple[int, int]:
    """Return the ledger id and the entry id of an entry as stored, or zeros if it is too short to have them."""
    head = memoryview(stored)[: ENTRY_NAME.size]
    return ENTRY_NAME.unpack(head) if len(head) == ENTRY_NAME.size else (0, 0)
