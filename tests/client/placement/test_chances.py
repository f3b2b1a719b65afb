"""The weights as operators see them."""

import pytest

from bookie.client.config import ClientConfig
from bookie.client.placement.chances import chances, families, placement_families
from bookie.client.wire.bookie_space import BookieInfo
from bookie.metrics.text import write
from tests.client.placement.clusters import placed

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


@pytest.mark.parametrize("racks", [False, True])
def test_weights_as_they_were_used(racks: bool) -> None:
    """A bookie above the cap of its rack, but below that of the cluster, is shown with the weight that was used."""
    free = {"a": 1000, "b": 100, "c": 100, "d": 400, "e": 400, "f": 400}
    places = {bookie: "/small" if racks and bookie in "abc" else "/large" for bookie in free}
    policy = placed(places, weighted_placement=True)
    policy.weights_changed(free)
    for _ in range(300):
        assert policy.replacement(2, 1, ["b", "f"], 0) in ("ac" if racks else "acde")
    known = {bookie: BookieInfo(2000, left) for bookie, left in free.items()}
    text = write(placement_families(set(free), known, policy.drawn, policy.config)).decode()
    # The median is 100 in the small rack, and 400 among all.
    assert f'placement_used_weight_bytes{{bookie="a"}} {300 if racks else 1000}\n' in text
    assert 'placement_capped_weight_bytes{bookie="a"} 1000\n' in text
    assert f'placement_capped_draws_total{{bookie="a"}} {policy.drawn["a"].count if racks else 0}\n' in text
    assert 'placement_used_weight_bytes{bookie="c"} 100\n' in text
    assert sum(one.count for one in policy.drawn.values()) == 300
    policy.bookies_changed(frozenset(free) - {"a"}, frozenset())
    assert "a" not in policy.drawn


def test_op5_a_bookie_is_a_label() -> None:
    """OP5: a bookie's id is a label, whatever characters it has; unknown values have no sample."""
    rows = chances({"a:1", 'q"\\'}, {"a:1": BookieInfo(10, 5)}, ClientConfig(weighted_placement=True))
    text = write(families(rows)).decode()
    assert 'bookie_client_bookie_free_bytes{bookie="a:1"} 5\n' in text
    assert 'bookie_client_placement_chance_ratio{bookie="q\\"\\\\"} 0.5\n' in text
    assert text.count("bookie_client_bookie_total_bytes{") == 1
    assert text.count("# TYPE") == 6
