"""The client: ledgers, and below them channels to single bookies.

    from bookie.client import BookKeeper
    with BookKeeper("zk+hierarchical://127.0.0.1:2181/ledgers") as bk:
        with bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, password=b"") as ledger:
            ledger.append(b"hello")

bookkeeper     ledgers made, opened, deleted, listed, by threads
logs           named lists of ledgers, by threads
bookie_infos   how much room bookies have, by threads
handles        a ledger that is read or written, by threads
loop_thread    the event loop of such a client
aio            the same for asyncio
ledgers        the protocol of ledgers
bookies        connections to bookies, on asyncio
known_cluster  which bookies there are, where they stand, how much room they have
placement      which bookies a ledger goes to
config         every setting
features       switches that are thrown while a client runs
contracts      what the protocol of ledgers stands on

channel        one connection in V2: add, read, batch read, fence; pipelined
channel_v3     one connection in V3: the same, long polls, explicit LACs, deferred sync, facts about the bookie
operations     what both can do
connection     what both are made of: socket, receiving thread, replies
security       how a connection is encrypted and authenticated
tls            encryption of a connection
extensions     operations that only some bookies offer
requests_v3, answers_v3, messages    V3 messages that are not bulk
stream         a bounded stream of adds on a channel
entries        what a reader gets: batches of verified entries
read_answers   the answers to single reads that were asked together
batch          the answer to a batch read, as stored: one buffer and numpy offsets
digest         digest types and keys; sealing and opening entries
flags          what a request may ask for besides its operation
reply          the pending answer to one request
receive        the memory that answers arrive in
demo           write a million entries and read them back
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bookie.client.answers_v3 import LacAnswer, ReadAnswer
    from bookie.client.batch import StoredBatch
    from bookie.client.bookie_space import BookieInfo
    from bookie.client.bookkeeper import BookKeeper
    from bookie.client.channel import Channel
    from bookie.client.channel_v3 import ChannelV3
    from bookie.client.config import ClientConfig
    from bookie.client.digest import Digest, DigestType, OpenedEntry, master_key
    from bookie.client.entries import Entry, EntryBatch
    from bookie.client.extensions import Extensions
    from bookie.client.flags import Flags
    from bookie.client.handles import AdvancedWriteHandle, Append, ReadHandle, WriteHandle
    from bookie.client.operations import BookieChannel
    from bookie.client.reply import Reply
    from bookie.client.security import Security
    from bookie.client.stream import AddStream
    from bookie.client.tls import Tls

__all__ = [
    "AddStream",
    "AdvancedWriteHandle",
    "Append",
    "BookieChannel",
    "BookieInfo",
    "BookKeeper",
    "Channel",
    "ChannelV3",
    "ClientConfig",
    "Digest",
    "DigestType",
    "Entry",
    "EntryBatch",
    "Extensions",
    "Flags",
    "LacAnswer",
    "master_key",
    "OpenedEntry",
    "ReadAnswer",
    "ReadHandle",
    "Reply",
    "Security",
    "StoredBatch",
    "Tls",
    "WriteHandle",
]

MODULES = {
    "AddStream": "stream",
    "AdvancedWriteHandle": "handles",
    "Append": "handles",
    "BookieChannel": "operations",
    "BookieInfo": "bookie_space",
    "BookKeeper": "bookkeeper",
    "Channel": "channel",
    "ChannelV3": "channel_v3",
    "ClientConfig": "config",
    "Digest": "digest",
    "DigestType": "digest",
    "Entry": "entries",
    "EntryBatch": "entries",
    "Extensions": "extensions",
    "Flags": "flags",
    "LacAnswer": "answers_v3",
    "master_key": "digest",
    "OpenedEntry": "digest",
    "ReadAnswer": "answers_v3",
    "ReadHandle": "handles",
    "Reply": "reply",
    "Security": "security",
    "StoredBatch": "batch",
    "Tls": "tls",
    "WriteHandle": "handles",
}
"""Where each name is: loaded when it is asked for, so that who wants one connection does not load all of the client."""


def __getattr__(name: str) -> Any:
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
