"""The client. So far: channels to single bookies, digests, and batches of entries.

channel        one connection in V2: add, read, batch read, fence; pipelined
channel_v3     one connection in V3: the same, long polls, explicit LACs, deferred sync, facts about the bookie
operations     what both can do
connection     what both are made of: socket, receiving thread, replies
security       how a connection is encrypted and authenticated
tls            encryption of a connection
extensions     operations that only some bookies offer
requests_v3, answers_v3, messages    V3 messages that are not bulk
stream         a bounded stream of adds on a channel
batch          the answer to a batch read: one buffer and numpy offsets
digest         digest types and keys; sealing and opening entries
flags          what a request may ask for besides its operation
reply          the pending answer to one request
receive        the memory that answers arrive in
demo           write a million entries and read them back
"""

from bookie.client.answers_v3 import BookieInfo, LacAnswer, ReadAnswer
from bookie.client.batch import EntryBatch
from bookie.client.channel import Channel
from bookie.client.channel_v3 import ChannelV3
from bookie.client.digest import Digest, DigestType, Entry, master_key
from bookie.client.extensions import Extensions
from bookie.client.flags import Flags
from bookie.client.operations import BookieChannel
from bookie.client.reply import Reply
from bookie.client.security import Security
from bookie.client.stream import AddStream
from bookie.client.tls import Tls

__all__ = [
    "AddStream",
    "BookieChannel",
    "BookieInfo",
    "Channel",
    "ChannelV3",
    "Digest",
    "DigestType",
    "Entry",
    "EntryBatch",
    "Extensions",
    "Flags",
    "LacAnswer",
    "master_key",
    "ReadAnswer",
    "Reply",
    "Security",
    "Tls",
]
