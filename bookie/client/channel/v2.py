"""A channel that speaks V2: adds, reads, batch reads and fencing.

A second request for the same entry waits until the first one is answered: see `bookie.client.wire.unanswered`.
"""

from bookie.client.channel.operations import BookieChannel
from bookie.client.wire.v2 import WireV2


class Channel(BookieChannel):
    """A connection to one bookie that speaks V2. `BookieChannel` describes its methods.

    There can be one stream of adds per ledger at a time.
    """

    protocol = WireV2
