"""The table of `perf.lagging`, and where its readers read."""

from perf.lagging.__main__ import first_of_window, in_cache
from perf.lagging.table import RESULTS, table
from perf.side_by_side.card import ROOT, newest_run
from perf.side_by_side.sessions import ENTRY_BYTES


def test_a_lag_of_one_is_a_write_cache() -> None:
    """The entries of all ledgers together are as many bytes as the cache."""
    assert 0 <= (512 << 20) - in_cache(1.0, 1000) * 1000 * ENTRY_BYTES < 1000 * ENTRY_BYTES


def test_what_another_writer_wrote_counts_for_the_lag() -> None:
    """So each row reads as far behind the newest entry as it says, however many rows came before it."""
    assert first_of_window(1000, 100, 60, 0) == 840
    assert first_of_window(1000, 100, 60, 40) == 880
    assert first_of_window(1000, 100, 60, 400) == 940


def test_medians_and_their_ratio() -> None:
    """Each memory, lag and kind of read has a line."""
    rows = [
        {"subject": subject, "memory": memory, "lag": 0.25, "kind": "random", "entries_s": rate, "cpu": rate / 1000}
        for memory, subject, rates in (
            ("enough", "ours", (9000, 1000, 3000)), ("enough", "java", (500, 1500)),
            ("scarce", "ours", (2000,)), ("scarce", "java", (4000,)),
        )
        for rate in rates
    ]  # fmt: skip
    assert table(rows)[2:] == [
        "| enough | 0.25 | random | 3,000 | 1,000 | 3.0 | 3.0 | 1.0 |",
        "| scarce | 0.25 | random | 2,000 | 4,000 | 0.5 | 2.0 | 4.0 |",
    ]


def test_the_page_has_the_table_of_the_newest_run() -> None:
    """No figure of the table is typed by hand."""
    lines = table(newest_run(RESULTS.read_text().splitlines()))
    assert len(lines) == 2 + 20
    assert "\n".join(lines) in (ROOT / "perf/README.md").read_text()
