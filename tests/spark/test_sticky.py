"""A partition is read from one replica, which then reads ahead for it, as the bookies' access logs show."""

from collections.abc import Callable
from typing import Any

import pytest

from bookie.client import BookKeeper
from tests.fixtures.bookies import BookieProcess

pytestmark = [pytest.mark.interop, pytest.mark.leaks("gRPC keeps its threads as long as the process lives")]

ENTRIES, PARTITIONS = 400, 4
PATIENT = {"bookkeeper.firstSpeculativeReadTimeout": "0", "bookkeeper.readEntryTimeoutSec": "60"}


@pytest.mark.parametrize("batched", ["true", "false"])
def test_a_partition_has_one_bookie(spark: Any, new_bookies: Callable[..., list[BookieProcess]], batched: str) -> None:
    """With batch reads and with single reads."""
    bookies = new_bookies(3)
    logs = [one.directory / "access.csv" for one in bookies]
    for bookie, log in zip(bookies, logs, strict=True):
        bookie.settings |= {"accessLogFile": str(log), "accessLogSampleRate": "1"}
        bookie.start()
    uri = f"grpc://{bookies[0].admin}"
    with BookKeeper(uri) as bk, bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=3) as ledger:
        for _ in range(ENTRIES):
            ledger.append_async(b"x" * 4096)
    options = {"metadataServiceUri": uri, "ledgers": str(ledger.id), "minPartitions": str(PARTITIONS), **PATIENT}
    options |= {"readBatchBytes": "64k", "bookkeeper.batchReadEnabled": batched}
    frame = spark.read.format("bookkeeper").options(**options).load()
    assert frame.rdd.getNumPartitions() == PARTITIONS
    assert frame.count() == ENTRIES
    for bookie in reversed(bookies):
        bookie.stop()
    op = "batch_read" if batched == "true" else "read"
    served: dict[int, set[int]] = {}
    for number, log in enumerate(logs):
        for line in log.read_text().splitlines()[1:]:
            _, what, where, entry, *_ = line.split(",")
            if what == op and int(where) == ledger.id:
                served.setdefault(int(entry), set()).add(number)
    assert len(served) == ENTRIES if batched == "false" else len(served) >= ENTRIES * 4096 / (64 << 10)
    share = ENTRIES // PARTITIONS
    for first in range(0, ENTRIES, share):
        mine = [numbers for entry, numbers in served.items() if first <= entry < first + share]
        assert len(set.union(*mine)) == 1, f"entries {first} to {first + share - 1}"
