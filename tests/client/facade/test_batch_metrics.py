"""The metrics of batch reads that a whole client shows, whichever way its reads take (BP-62)."""

from bookie.client import BookKeeper
from bookie.metrics.text import write
from tests.client.facade.test_direct import PAYLOADS, only_direct, warm, written


def values(bk: BookKeeper) -> dict[str, float]:
    """Return the client's metrics as they are written on a page."""
    lines = write(bk.metrics()).decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_reads_by_threads_and_by_the_loop_are_counted(uri: str) -> None:
    """A batch that a thread reads over its own connection counts like those of the event loop."""
    ledger = written(uri)
    name = "bookie_client_batch_read"
    with BookKeeper(uri, use_v2_wire_protocol=True) as bk, bk.open_ledger(ledger) as reader:
        assert values(bk)[f"{name}_entries_count"] == 0
        warm(reader)
        before = values(bk)
        assert before[f"{name}_entries_count"] == before[f"{name}_entries_sum"] == 1
        with only_direct(reader):
            batch = reader.batch_read(0)
        assert len(batch) == len(PAYLOADS)
        later = reader.batch_read_async(0, 7).result()
        after = values(bk)
    assert after[f"{name}_entries_sum"] == 1 + len(batch) + len(later)
    assert after[f'{name}_seconds_count{{success="true"}}'] == 3
    assert after[f"{name}_bytes_sum"] - before[f"{name}_bytes_sum"] == batch.nbytes + later.nbytes
    assert after["bookie_client_unbatched_bookies"] == 0
    assert not any(value for key, value in after.items() if "fallbacks" in key)
