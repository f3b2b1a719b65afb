"""Why entries of a batch were read one by one, as a client counts it and shows it in its metrics (BP-62)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bookie.client.bookies.client import BookieClient
from bookie.metadata.records.ledger_metadata import LedgerMetadata
from bookie.metrics.text import write
from tests.client.ledgers.odd_bookie import odd_bookie, single
from tests.client.ledgers.shelf import Shelf, metadata, sealed
from tests.reference import wire_v2

ENTRIES = 10


@pytest.fixture(scope="module")
def closed(shelf: Shelf) -> int:
    """A ledger of ten entries, complete on all three bookies."""
    return shelf.ledger(range(ENTRIES))


def shown(shelf: Shelf, ledger: int, value: Callable[[str], LedgerMetadata], answer: Any, **settings: Any) -> list[str]:
    """Read a ledger twice by a batch read, and return the lines of the metrics that are not 0.

    `value` gets the id of a bookie that answers as `answer` says.
    """

    async def main() -> list[str]:
        wanted = {"use_v2_wire_protocol": True, "sticky_reads": False, **settings}
        async with odd_bookie(answer) as odd, shelf.reader(ledger, value(odd), **wanted) as reader:
            for _ in range(2):
                assert len(await reader.batch_read(0)) == ENTRIES
            client = reader.replicas._bookies
            assert isinstance(client, BookieClient)
            lines = write(client.batch_stats.families()).decode().splitlines()
        return [
            line.removeprefix("bookie_client_batch_read_") for line in lines if line[0] != "#" and line[-2:] != " 0"
        ]

    return asyncio.run(main())


def old(request: wire_v2.Request) -> bytes | None:
    """Answer like a bookie that knows no batch reads, and hangs up at one."""
    if request.op == wire_v2.BATCH_READ:
        return None
    return single(request, sealed(request.ledger, request.entry))


def test_batches_are_counted(shelf: Shelf, closed: int) -> None:
    """A batch read counts with its time, its entries and its bytes, and is no fallback."""
    lines = shown(shelf, closed, lambda _: metadata({0: shelf.ids}, ENTRIES - 1), old)
    size = sum(4 + len(sealed(closed, entry)) for entry in range(ENTRIES))
    assert {'seconds_count{success="true"} 2', "entries_count 2", f"entries_sum {ENTRIES * 2.0}", "bytes_count 2"} <= {
        *lines
    }
    assert f"bytes_sum {size * 2.0}" in lines
    assert 'entries_bucket{le="10.0"} 2' in lines
    assert 'entries_bucket{le="5.0"} 2' not in lines
    assert not any("fallbacks" in line for line in lines)


@pytest.mark.parametrize(
    ("reason", "settings", "quorums"),
    [("disabled", {"batch_read_enabled": False}, (3, 3, 2)), ("striped", {}, (3, 2, 2))],
)
def test_no_batch_is_tried(
    shelf: Shelf, closed: int, reason: str, settings: dict[str, Any], quorums: tuple[int, int, int]
) -> None:
    """Batch reads that are disabled, or impossible since the ledger is striped, count only as fallbacks."""
    value = metadata({0: shelf.ids}, ENTRIES - 1, quorums=quorums)
    lines = shown(shelf, closed, lambda _: value, old, **settings)
    assert [line for line in lines if "_sum" not in line] == [f'fallbacks_total{{reason="{reason}"}} 2']


def test_no_bookie_supports_batches(shelf: Shelf) -> None:
    """The first batch read fails at an old bookie, which is not asked again; both calls fall back for that reason."""
    lines = shown(shelf, 7, lambda odd: metadata({0: (odd,)}, ENTRIES - 1), old)
    assert 'fallbacks_total{reason="unsupported"} 2' in lines
    assert 'seconds_count{success="false"} 1' in lines
    assert not any(line.startswith("entries_count") for line in lines)


def test_no_bookie_is_registered(shelf: Shelf, closed: int) -> None:
    """In V3 nobody knows what an unregistered bookie supports, so its entries are read one by one."""
    unregistered = tuple(f"localhost:{bookie.port}" for bookie in shelf.bookies)
    value = metadata({0: unregistered}, ENTRIES - 1)
    lines = shown(shelf, closed, lambda _: value, old, use_v2_wire_protocol=False)
    assert 'fallbacks_total{reason="unsupported"} 2' in lines
    assert not any(line.startswith("entries_count") for line in lines)


def test_those_with_batches_fail(shelf: Shelf) -> None:
    """If only a bookie without batch reads has the entries, the call falls back because the others failed."""
    ledger = shelf.ledger([], ())

    def value(odd: str) -> LedgerMetadata:
        return metadata({0: (odd, shelf.ids[0])}, ENTRIES - 1)

    lines = shown(shelf, ledger, value, old)
    assert 'fallbacks_total{reason="failed"} 2' in lines
    assert not any('reason="unsupported"' in line for line in lines)
