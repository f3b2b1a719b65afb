"""The driver's side of the sink, without a JVM: an earlier commit is recognised, and only orphans are deleted."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from bookie.client import BookKeeper
from bookie.errors import BookKeeperError
from bookie.spark.options import Cluster

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (make spark)", exc_type=ImportError)
pytest.importorskip("pyspark", reason="pyspark is not installed (make spark)", exc_type=ImportError)

from bookie.spark.sink import orphans  # noqa: E402
from bookie.spark.sink.commit import abort, commit  # noqa: E402
from bookie.spark.sink.labels import Labels  # noqa: E402
from bookie.spark.sink.results import Result  # noqa: E402
from bookie.spark.sink.settings import Settings  # noqa: E402
from bookie.spark.sink.task import Attempt, flat, stale_at_ms  # noqa: E402

pytestmark = pytest.mark.leaks("gRPC keeps its threads as long as the process lives")
LATER_MS = 1 << 50


@pytest.fixture
def bk(three_uri: str) -> Iterator[BookKeeper]:
    """A client."""
    with BookKeeper(three_uri) as client:
        yield client


def settings(uri: str, **other: Any) -> Settings:
    """Return the settings of a job that writes to one bookie."""
    given = Settings(
        cluster=Cluster(uri),
        sizes=(1, 1, 1),
        digest="CRC32C",
        password=b"",
        log="",
        log_column=True,
        ledger_bytes_max=None,
        metadata=(),
        keep_on_abort=False,
        orphan_ttl_s=3600.0,
        manifest="",
        overwrite=False,
        job="job",
    )
    return replace(given, **other)


def attempt(bk: BookKeeper, of: Settings, logs: Sequence[str], partition: int = 0, batch: int = 0) -> Result:
    """Run a task attempt of a stream that writes a row to each of these logs."""
    stale = stale_at_ms(of)
    one = Attempt(bk, of, Labels(of.job, "query", batch, partition, 0, "", stale))
    rows = {"value": [f"{log} {partition}" for log in logs], "log": list(logs)}
    one.write([pa.RecordBatch.from_pydict(rows)])
    return Result(of.job, "query", batch, partition, stale, one.finish())


def ledgers_of(*results: Result) -> list[int]:
    """Return the ledgers by partition."""
    return [one.ledger for result in results for one in result.written]


def test_a_batch_that_is_repeated_is_recognised(three_uri: str, bk: BookKeeper) -> None:
    """The driver dies between two logs: each has the repeated batch once, and what was written in vain is deleted."""
    of = settings(three_uri)
    first = [attempt(bk, of, ["r-a", "r-b"], partition) for partition in (0, 1)]
    a = [result.written[0].ledger for result in first]
    bk.logs.append("r-a", a, ("query", 0))  # the driver ended after this step
    again = [attempt(bk, of, ["r-a", "r-b"], partition) for partition in (1, 0)]
    commit(bk, of, again, 0)
    assert bk.logs.get("r-a").value.ledgers == tuple(a)
    assert bk.logs.get("r-b").value.ledgers == (again[1].written[1].ledger, again[0].written[1].ledger)
    left = set(bk.list_ledgers())
    assert not {result.written[0].ledger for result in again} & left
    lost = {result.written[1].ledger for result in first}
    assert lost <= left
    assert set(orphans.clean(bk, ["r-a", "r-b"], LATER_MS)) == lost
    assert set(bk.list_ledgers()) >= set(a)


def test_an_abort_after_a_commit_deletes_nothing(three_uri: str, bk: BookKeeper) -> None:
    """Spark aborts when a commit fails, which may be due to a lost response; failed attempts' ledgers are deleted."""
    of = settings(three_uri, job="answer lost")
    began = time.time_ns() // 1_000_000
    loser, winner = attempt(bk, of, ["abort"]), attempt(bk, of, ["abort"])
    other = attempt(bk, replace(of, job="another"), ["abort"])
    commit(bk, of, [winner], 0)
    abort(bk, of, [winner], began)
    left = set(bk.list_ledgers())
    assert left >= set(ledgers_of(winner, other))
    assert not left & set(ledgers_of(loser))
    abort(bk, replace(of, job="of a driver that knows no more"), [other], None)
    assert not set(bk.list_ledgers()) & set(ledgers_of(other))


def test_orphans_are_what_nobody_can_commit(three_uri: str, bk: BookKeeper) -> None:
    """These are neither committed, nor may still be committed, nor belong to another log; each is examined once."""
    of = settings(three_uri)
    old, committed, elsewhere = attempt(bk, of, ["o"]), attempt(bk, of, ["o"]), attempt(bk, of, ["p"])
    running = attempt(bk, replace(of, orphan_ttl_s=7200.0), ["o"])
    commit(bk, replace(of, orphan_ttl_s=0), [committed], 5)
    between = running.stale_at_ms - 1
    assert orphans.clean(bk, ["o"]) == []
    assert orphans.clean(bk, ["o"], between) == ledgers_of(old)
    assert ledgers_of(old)[0] < bk.logs.get("o").value.settled <= ledgers_of(running)[0]
    commit(bk, of, [running], 6)
    assert bk.logs.get("o").value.ledgers == (*ledgers_of(committed), *ledgers_of(running))
    assert orphans.clean(bk, ["o"], LATER_MS) == []
    assert set(bk.list_ledgers()) >= set(ledgers_of(committed, elsewhere, running))
    late = replace(attempt(bk, of, ["o"]), stale_at_ms=1)
    with pytest.raises(BookKeeperError, match="longer ago than orphanTtl"):
        commit(bk, of, [late], 7)


@pytest.mark.parametrize("kind", ["binary", "string", "large_binary", "large_string"])
def test_values_are_taken_as_they_lie(kind: str) -> None:
    """Slices, empty values, 64-bit offsets, and empty arrays."""
    column = pa.array([b"", b"ab", b"", b"cde", b"f"], pa.binary()).cast(getattr(pa, kind)())
    for array in (column, column[1:4], column[2:2], pa.array([b""], pa.binary())):
        payloads, offsets = flat(array)
        found = [bytes(payloads[start:end]) for start, end in pairwise(offsets)]
        assert found == [bytes(one.as_buffer()) for one in array]
