"""What `create_ledger` does if it is told nothing: ledgers that can be read in batches, with their creation time."""

import asyncio
import logging
import time
from typing import Any

import numpy as np
import pytest

from bookie.client import BookKeeper, aio


def test_a_ledger_by_default_is_read_in_batches_and_has_a_time(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    """Every entry is on every bookie of the ensemble, a majority acknowledges, and the metadata have the time."""
    before = time.time_ns() // 1_000_000
    with BookKeeper(uri) as bk:
        for size, majority in ((1, 1), (2, 2), (3, 2)):
            with bk.create_ledger(ensemble_size=size) as ledger:
                ledger.append(b"x")
            found = bk.ledger_metadata(ledger.id)
            assert (found.ensemble_size, found.write_quorum, found.ack_quorum) == (size, size, majority)
            assert found.ctime_ms is not None
            assert before <= found.ctime_ms <= time.time_ns() // 1_000_000
        with bk.create_ledger() as ledger, bk.create_ledger_advanced() as advanced:
            ledger.append_all(b"one" * 100, np.arange(0, 303, 3))
            assert advanced.metadata.write_quorum == ledger.metadata.write_quorum == 3
        with bk.open_ledger(ledger.id) as reader:
            assert len(reader.batch_read(0, max_count=100)) == 100
    assert not [record for record in caplog.records if "striped" in record.getMessage()]


def test_a_striped_ledger_is_created_with_a_warning(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    """One for each pair of sizes, of either client, and none if batch reads are switched off anyway."""
    sizes: dict[str, Any] = {"ensemble_size": 3, "write_quorum_size": 2}

    async def twin() -> None:
        async with aio.BookKeeper(uri) as bk:
            await (await bk.create_ledger(**sizes)).close()

    with BookKeeper(uri, batchReadEnabled=False) as bk:
        bk.create_ledger(**sizes).close()
    assert not caplog.records
    with caplog.at_level(logging.WARNING), BookKeeper(uri) as bk:
        for _ in range(2):
            with bk.create_ledger(**sizes) as ledger:
                assert ledger.metadata.ack_quorum == 2
    asyncio.run(twin())
    assert [record.getMessage()[:80] for record in caplog.records if record.levelno == logging.WARNING] == [
        "ledgers with an ensemble of 3 and a write quorum of 2 are striped: their entries"
    ] * 2


def test_the_creation_time_can_be_left_out(uri: str) -> None:
    """As Java's clients do by default."""
    with BookKeeper(uri, storeSystemTimeAsLedgerCreationTime=False) as bk, bk.create_ledger() as ledger:
        assert ledger.metadata.ctime_ms is None
