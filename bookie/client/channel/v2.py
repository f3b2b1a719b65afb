"""A channel that speaks V2: adds, reads, batch reads and fencing.

A second request for the same entry waits until the first one is answered: see `bookie.client.wire.unanswered`.
"""

from bookie._fast.client import framing_v2
from bookie._fast.client.add_window import AddWindow
from bookie.client.channel.operations import BookieChannel
from bookie.client.channel.stream import AddStream
from bookie.client.entries.digest import Digest
from bookie.client.wire.v2 import WireV2
from bookie.errors import IncorrectParameter


class Channel(BookieChannel):
    """A connection to one bookie that speaks V2. `BookieChannel` describes its methods."""

    protocol = WireV2

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
        """Open a stream of adds. There can be one stream per ledger at a time.

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
            IllegalOperation: The ledger has another stream on this channel.
            IncorrectParameter: An argument is outside its range.
            RequestTimeout: Earlier adds of the ledger are still unanswered.
        """
        try:
            window = AddWindow(ledger, first, outstanding)
            frames = framing_v2.AddFramer(digest.digester, digest.master_key, ledger, self.frame_bytes_max, flags=flags)
        except ValueError as error:
            raise IncorrectParameter(f"add stream to ledger {ledger}: {error}") from error
        self.connection.open_stream(window)
        return AddStream(self.connection, self.wire, window, frames, lac=lac, length=length)
