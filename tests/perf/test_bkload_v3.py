"""bkload in V3, against a server that leaves all of the protocol to the protobuf library."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.perf.driving import run_load
from tests.perf.v3_peer import v3_peer

LEDGER, ENTRIES, SIZE = 300, 500, 100
GOOD: tuple[dict[str, int], int, int] = ({}, 0, 0)


@pytest.fixture
def port() -> Iterator[int]:
    """A server with one ledger."""
    with v3_peer(LEDGER, ENTRIES, SIZE) as port:
        yield port


def trouble(result: dict[str, Any]) -> tuple[dict[str, int], int, int]:
    """Errors, bad answers, lost answers."""
    return result["errors"], result["bad"], result["lost"]


@pytest.mark.parametrize("size", [0, 100, 4096])
def test_adds(bkload: Path, port: int, size: int) -> None:
    """Every add is a message that the library reads, of an entry whose digest holds."""
    result = run_load(bkload, "fill", protocol=3, port=port, size=size, ledgers=4, first_ledger=126, entries=150,
                      outstanding=40, connections=2)  # fmt: skip
    assert (result["operations"], result["written"]["entries_min"], trouble(result)) == (600, 150, GOOD)
    assert result["protocol"] == 3


def test_single_reads(bkload: Path, port: int) -> None:
    """Answers are matched by their transaction, and every digest holds."""
    result = run_load(bkload, "read", protocol=3, port=port, size=SIZE, first_ledger=LEDGER, entries=ENTRIES,
                      outstanding=30, connections=2, count=1200, verify=1)  # fmt: skip
    assert (result["entries"], result["verified"], trouble(result)) == (1200, 1200, GOOD)


@pytest.mark.parametrize("batch", [1, 100, 500])
def test_batch_reads(bkload: Path, port: int, batch: int) -> None:
    """All entries of a batch, whichever way their lengths are written, are counted and verified."""
    result = run_load(bkload, "batch", protocol=3, port=port, size=SIZE, first_ledger=LEDGER, entries=ENTRIES,
                      batch=batch, outstanding=3, count=20, verify=1)  # fmt: skip
    assert (result["entries"], result["verified"], trouble(result)) == (20 * batch, 20 * batch, GOOD)


def test_errors_and_wrong_sizes(bkload: Path, port: int) -> None:
    """V3's own codes are counted by number; an answer of another size is bad."""
    unknown = run_load(bkload, "read", 1, protocol=3, port=port, first_ledger=LEDGER + 1, entries=9, count=7)
    beyond = run_load(bkload, "batch", 1, protocol=3, port=port, first_ledger=LEDGER, first_entry=ENTRIES,
                      entries=100, count=7)  # fmt: skip
    assert (trouble(unknown), trouble(beyond)) == (({"402": 7}, 0, 0), ({"403": 7}, 0, 0))
    for mode in ("read", "batch"):
        bad = run_load(bkload, mode, 1, protocol=3, port=port, size=SIZE + 1, first_ledger=LEDGER, entries=100, count=7)
        assert trouble(bad) == ({}, 7, 0)
