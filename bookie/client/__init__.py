"""The client. So far: channels to single bookies, digests, and batches of entries.

channel    one connection: add, read, batch read, fence; pipelined
stream     a bounded stream of adds on a channel
batch      the answer to a batch read: one buffer and numpy offsets
digest     digest types and keys; sealing and opening entries
reply      the pending answer to one request
receive    the memory that answers arrive in
demo       write a million entries and read them back
"""

from bookie.client.batch import EntryBatch
from bookie.client.channel import Channel
from bookie.client.digest import Digest, DigestType, Entry, master_key
from bookie.client.flags import Flags
from bookie.client.reply import Reply
from bookie.client.stream import AddStream

__all__ = ["AddStream", "Channel", "Digest", "DigestType", "Entry", "EntryBatch", "Flags", "master_key", "Reply"]
