"""bkload in V3, against a server that uses the protobuf library for the entire protocol."""

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
    """Return the numbers of errors, bad responses and lost responses."""
    return result["errors"], result["bad"], result["lost"]


@pytest.mark.parametrize("size", [0, 100, 4096])
def test_adds(bkload: Path, port: int, size: int) -> None:
    """Every add is a message that the library can parse, with an entry whose digest is valid."""
    result = run_load(bkload, "fill", protocol=3, port=port, size=size, ledgers=4, first_ledger=126, entries=150,
                      outstanding=40, connections=2)  # fmt: skip
    assert (result["operations"], result["written"]["entries_min"], trouble(result)) == (600, 150, GOOD)
    assert result["protocol"] == 3


def test_single_reads(bkload: Path, port: int) -> None:
    """Responses are matched by transaction, and every digest is valid."""
    result = run_load(bkload, "read", protocol=3, port=port, size=SIZE, first_ledger=LEDGER, entries=ENTRIES,
                      outstanding=30, connections=2, count=1200, verify=1)  # fmt: skip
    assert (result["entries"], result["verified"], trouble(result)) == (1200, 1200, GOOD)


@pytest.mark.parametrize("batch", [1, 100, 500])
def test_batch_reads(bkload: Path, port: int, batch: int) -> None:
    """All entries of a batch are counted and verified, in either encoding of their lengths."""
    result = run_load(bkload, "batch", protocol=3, port=port, size=SIZE, first_ledger=LEDGER, entries=ENTRIES,
                      batch=batch, outstanding=3, count=20, verify=1)  # fmt: skip
    assert (result["entries"], result["verified"], trouble(result)) == (20 * batch, 20 * batch, GOOD)


def test_errors_and_wrong_sizes(bkload: Path, port: int) -> None:
    """V3's codes are counted by number; a response of another size is bad."""
    unknown = run_load(bkload, "read", 1, protocol=3, port=port, first_ledger=LEDGER + 1, entries=9, count=7)
    beyond = run_load(bkload, "batch", 1, protocol=3, port=port, first_ledger=LEDGER, first_entry=ENTRIES,
                      entries=100, count=7)  # fmt: skip
    assert (trouble(unknown), trouble(beyond)) == (({"402": 7}, 0, 0), ({"403": 7}, 0, 0))
    for mode in ("read", "batch"):
        bad = run_load(bkload, mode, 1, protocol=3, port=port, size=SIZE + 1, first_ledger=LEDGER, entries=100, count=7)
        assert trouble(bad) == ({}, 7, 0)
