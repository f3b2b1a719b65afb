"""Batch reads on the metrics page: the histograms of BP-62, with either protocol, over real sockets."""

from collections.abc import Callable

import pytest

from bookie.client import Channel, ChannelV3, Digest
from bookie.client.wire.extensions import Extensions
from bookie.errors import NoSuchEntry, NoSuchLedger
from bookie.metrics.text import write
from tests.fixtures.whole_bookie import Running

DIGEST = Digest.of(password=b"")
NAME = "bookkeeper_server_BATCH_READ_ENTRY"
MS = ("5.0", "10.0", "20.0", "50.0", "100.0", "200.0", "500.0", "1000.0", "3000.0", "+Inf")
BYTES = ("128.0", "512.0", "1024.0", "2048.0", "4096.0", "16384.0", "131072.0", "1048576.0", "+Inf")
SIZES = [128, 129, 512, 513, 1024, 1025, 2048, 2049, 4096, 4097, 16384, 16385, 131072, 131073, 1048576, 1048577]
"""Bytes of frames at each edge, which belongs to the bucket below it, and above it."""
SINGLE = 'bookkeeper_server_READ_ENTRY_REQUEST_count{success="true"}'
V2_FRAME, RECORD = 4 + 24 + 8, 4 + DIGEST.overhead
"""Bytes of a V2 response without entries, and those of an entry besides its payload."""


def page(running: Running) -> dict[str, float]:
    """Return the values on the metrics page by name and labels, as they are written there."""
    lines = write(running.bookie.metrics()).decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def buckets(found: dict[str, float], name: str, success: str) -> dict[str, float]:
    """Return what each bucket of a histogram holds, not cumulated, by its edge in the order of the page."""
    start = f'{NAME}_{name}_bucket{{success="{success}",le="'
    edges = {key[len(start) :].rstrip('"}'): value for key, value in found.items() if key.startswith(start)}
    before = [0.0, *edges.values()]
    return {edge: value - low for (edge, value), low in zip(edges.items(), before, strict=False)}


def test_each_size_is_in_its_bucket(running: Running) -> None:
    """BR15: in V2, frames of every edge of BP-62, and of one byte more, are on the page in the right buckets."""
    with Channel.connect(*running.address) as channel:
        for entry, size in enumerate(SIZES):
            channel.add(7, entry, bytes(size - V2_FRAME - RECORD), digest=DIGEST, lac=-1, length=0)
        for entry in range(len(SIZES)):
            assert len(channel.batch_read(7, entry, max_count=1)) == 1
        for refused in (channel.batch_read_async(7, len(SIZES), 1), channel.batch_read_async(8, 0, 1)):
            with pytest.raises((NoSuchEntry, NoSuchLedger)):
                refused.result()
        found = page(running)
    good, bad = (buckets(found, "RESPONSE_SIZE", success) for success in ("true", "false"))
    assert tuple(good) == tuple(bad) == BYTES
    assert list(good.values()) == [1, 2, 2, 2, 2, 2, 2, 2, 1]
    assert bad.pop("128.0") == 2
    assert not any(bad.values())
    assert found[f'{NAME}_RESPONSE_SIZE_sum{{success="true"}}'] == sum(SIZES)
    assert found[f'{NAME}_RESPONSE_SIZE_sum{{success="false"}}'] == 2 * V2_FRAME
    for success, count in (("true", len(SIZES)), ("false", 2)):
        times = buckets(found, "REQUEST", success)
        assert tuple(times) == MS
        assert sum(times.values()) == found[f'{NAME}_REQUEST_count{{success="{success}"}}'] == count
        assert found[f'{NAME}_REQUEST_sum{{success="{success}"}}'] > 0


def test_a_request_for_a_hundred_entries(running: Running) -> None:
    """BR1: a thousand entries by hundreds take ten requests and ten responses; single reads take a thousand."""
    with Channel.connect(*running.address) as channel:
        added = [channel.add_async(7, entry, b"x", digest=DIGEST, lac=-1, length=0) for entry in range(1000)]
        for reply in added:
            reply.result()

        def grown(name: str, read: Callable[[], int]) -> float:
            before = page(running)[name]
            assert read() == 1000
            return page(running)[name] - before

        def in_batches() -> int:
            return sum(len(channel.batch_read(7, first, max_count=100)) for first in range(0, 1000, 100))

        def one_by_one() -> int:
            return sum(channel.read(7, entry) is not None for entry in range(1000))

        assert grown(f'{NAME}_REQUEST_count{{success="true"}}', in_batches) == 10
        assert grown(f'{NAME}_RESPONSE_SIZE_count{{success="true"}}', in_batches) == 10
        assert grown(SINGLE, one_by_one) == 1000
        assert grown(SINGLE, in_batches) == 0


@pytest.mark.parametrize("channel_type", [Channel, ChannelV3])
def test_batches_are_no_single_reads(running: Running, channel_type: type[Channel] | type[ChannelV3]) -> None:
    """BR15: with either protocol, batch reads are in their own histograms, and single reads in `READ_ENTRY`."""
    with channel_type.connect(*running.address) as channel:
        if isinstance(channel, ChannelV3):
            channel.extensions = Extensions(["batchRead"])
        for entry in range(20):
            channel.add(7, entry, bytes(1000), digest=DIGEST, lac=-1, length=0)
        channel.read(7, 0)
        for count in (1, 3, 20):
            assert len(channel.batch_read(7, 0, max_count=count)) == count
        with pytest.raises(NoSuchEntry):
            channel.batch_read(7, 20, max_count=1)
        found = page(running)
    for success, count in (("true", 3), ("false", 1)):
        assert found[f'{NAME}_REQUEST_count{{success="{success}"}}'] == count
        assert found[f'{NAME}_RESPONSE_SIZE_count{{success="{success}"}}'] == count
    assert found['bookkeeper_server_READ_ENTRY_REQUEST_count{success="true"}'] == 1
    assert found['bookkeeper_server_READ_ENTRY_REQUEST_count{success="false"}'] == 0
    besides_entries = found[f'{NAME}_RESPONSE_SIZE_sum{{success="true"}}'] - 24 * (RECORD + 1000)
    assert 3 * V2_FRAME // 2 < besides_entries < 3 * 96
    assert found["pybookie_read_entries_total"] == 25
