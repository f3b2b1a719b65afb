"""The weights as operators see them."""

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.chances import chances, families
from bookie.client.wire.bookie_space import BookieInfo
from bookie.metrics.text import write

KNOWN = {name: BookieInfo(2000, free) for name, free in zip("abcde", (200, 200, 300, 500, 1000), strict=True)}


def test_rows_before_and_after_the_cap() -> None:
    """The proposal's example, capped at twice the minimum, gives the expected rows."""
    config = ClientConfig(weighted_placement=True, weight_cap="min", weight_multiple_max=2)
    rows = chances(KNOWN, KNOWN, config)
    assert rows[4][:5] == ("e", 2000, 1000, 1000.0, 400.0)
    assert rows[4].chance == pytest.approx(400 / 1500)
    assert [row.capped for row in rows] == [200, 200, 300, 400, 400]
    assert sum(row.chance for row in rows) == pytest.approx(1)


def test_a_silent_bookie_has_the_weight_of_the_smallest() -> None:
    """A bookie of unknown size has the smallest weight and a row without sizes; without weights chances are equal."""
    rows = chances({*KNOWN, "silent"}, KNOWN, ClientConfig())
    assert rows[5][:5] == ("silent", None, None, 200.0, 200.0)
    assert rows[5].chance == pytest.approx(1 / 6)
    assert chances((), {}, ClientConfig()) == []


def test_op5_a_bookie_is_a_label() -> None:
    """OP5: a bookie's id is a label, whatever characters it has; unknown values have no sample."""
    rows = chances({"a:1", 'q"\\'}, {"a:1": BookieInfo(10, 5)}, ClientConfig(weighted_placement=True))
    text = write(families(rows)).decode()
    assert 'bookie_client_bookie_free_bytes{bookie="a:1"} 5\n' in text
    assert 'bookie_client_placement_chance_ratio{bookie="q\\"\\\\"} 0.5\n' in text
    assert text.count("bookie_client_bookie_total_bytes{") == 1
    assert text.count("# TYPE") == 5
