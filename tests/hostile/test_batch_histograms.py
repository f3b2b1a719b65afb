"""Batch reads are counted in the histograms of BP-62 with either protocol, over real sockets."""

from pathlib import Path

import pytest

from bookie.client import Channel, ChannelV3, Digest
from bookie.client.wire.extensions import Extensions
from bookie.errors import NoSuchEntry
from tests.hostile.local import local_bookie

ENTRIES, PAYLOAD = 20, 1000
RECORD = 4 + 32 + 4 + PAYLOAD
"""The bytes of an entry in a response: its length, the client's header, the digest, the payload."""


@pytest.mark.parametrize("channel_type", [Channel, ChannelV3])
def test_answers_are_counted_by_time_and_size(tmp_path: Path, channel_type: type[Channel] | type[ChannelV3]) -> None:
    """BR15: three responses of known size and one refusal are counted; single reads are not."""
    digest = Digest.of(password=b"")
    with local_bookie(tmp_path) as bookie:
        host, port = bookie.address
        with channel_type.connect(host, port) as channel:
            if isinstance(channel, ChannelV3):
                channel.extensions = Extensions(["batchRead"])
            for entry in range(ENTRIES):
                channel.add(7, entry, bytes(PAYLOAD), digest=digest, lac=entry - 1, length=PAYLOAD * (entry + 1))
            channel.read(7, 0)
            for count in (1, 3, ENTRIES):
                assert len(channel.batch_read(7, 0, max_count=count)) == count
            with pytest.raises(NoSuchEntry):
                channel.batch_read(7, ENTRIES, max_count=1)
            view = bookie.port.batches()
    assert sum(view.request_ms.counts) == 4
    assert view.request_ms.sum > 0
    assert view.response_bytes.counts == (0, 0, 0, 1, 1, 0, 1, 0, 0)
    assert view.response_bytes.sum == (1 + 3 + ENTRIES) * RECORD
