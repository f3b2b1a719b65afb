"""The client: BookKeeper, which reads and writes ledgers, and channels to single bookies.

    from bookie.client import BookKeeper
    with BookKeeper("zk+hierarchical://127.0.0.1:2181/ledgers") as bk:
        with bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=2, password=b"") as ledger:
            ledger.append(b"hello")

There are three public interfaces; the first is built on the second:

blocking       the ledger client for threads; begin reading with `blocking.bookkeeper`
aio            the ledger client for asyncio
channel        a blocking connection to one bookie, below all ledgers

They are implemented by these packages and modules:

replication    auto-recovery: finds ledgers with too few replicas and copies them
known_cluster  the bookies of a cluster: which are registered, in which rack, and with how much free space
ledgers        the ledger protocol: ensembles, quorums, recovery
placement      placement policies, which choose the bookies of a ledger
bookies        asyncio connections to bookies
contracts      the interfaces that the ledger protocol needs
wire           the V2 and V3 wire protocols, TLS and authentication
entries        entries and batches of entries, with their digests
event_loop     an event loop on a thread of its own, and groups of tasks
config         the settings
arguments      checks of the types of arguments
features       switches that can be changed while a client runs

demo           a command that writes a million entries and reads them back
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bookie.client.blocking.appends import Append
    from bookie.client.blocking.bookkeeper import BookKeeper
    from bookie.client.blocking.handles import ReadHandle
    from bookie.client.blocking.writers import AdvancedWriteHandle, WriteHandle
    from bookie.client.channel.operations import BookieChannel
    from bookie.client.channel.reply import Reply
    from bookie.client.channel.stream import AddStream
    from bookie.client.channel.v2 import Channel
    from bookie.client.channel.v3 import ChannelV3
    from bookie.client.config import ClientConfig
    from bookie.client.entries.batch import StoredBatch
    from bookie.client.entries.digest import Digest, DigestType, OpenedEntry, master_key
    from bookie.client.entries.verified import Entry, EntryBatch
    from bookie.client.wire.answers_v3 import LacAnswer, ReadAnswer
    from bookie.client.wire.bookie_space import BookieInfo
    from bookie.client.wire.extensions import Extensions
    from bookie.client.wire.flags import Flags
    from bookie.client.wire.security import Security
    from bookie.client.wire.tls import Tls

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
    "AddStream": "channel.stream",
    "AdvancedWriteHandle": "blocking.writers",
    "Append": "blocking.appends",
    "BookieChannel": "channel.operations",
    "BookieInfo": "wire.bookie_space",
    "BookKeeper": "blocking.bookkeeper",
    "Channel": "channel.v2",
    "ChannelV3": "channel.v3",
    "ClientConfig": "config",
    "Digest": "entries.digest",
    "DigestType": "entries.digest",
    "Entry": "entries.verified",
    "EntryBatch": "entries.verified",
    "Extensions": "wire.extensions",
    "Flags": "wire.flags",
    "LacAnswer": "wire.answers_v3",
    "master_key": "entries.digest",
    "OpenedEntry": "entries.digest",
    "ReadAnswer": "wire.answers_v3",
    "ReadHandle": "blocking.handles",
    "Reply": "channel.reply",
    "Security": "wire.security",
    "StoredBatch": "entries.batch",
    "Tls": "wire.tls",
    "WriteHandle": "blocking.writers",
}
"""The module of each public name. A name is imported on first use, so that a program that needs only a channel does
not load the whole client.
"""


def __getattr__(name: str) -> Any:
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
