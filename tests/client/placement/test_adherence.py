"""The fewest replacements with which an ensemble satisfies its policy, compared with trying all."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.client.contracts import Adherence
from bookie.client.placement.adherence import mended
from tests.client.placement.clusters import BOOKIES, placed
from tests.fixtures.draws import examples

RACKS = st.dictionaries(st.sampled_from(BOOKIES), st.sampled_from(["/a", "/b", "/c"]), min_size=4)


@settings(max_examples=examples(100), deadline=None)
@given(places=RACKS, size=st.integers(2, 4), write=st.integers(1, 4), racks_min=st.integers(1, 3), data=st.data())
def test_the_fewest_are_replaced(
    places: dict[str, str], size: int, write: int, racks_min: int, data: st.DataObject
) -> None:
    """Nothing is replaced if the policy is satisfied or cannot be; otherwise just enough bookies are replaced."""
    write = min(write, size)
    placement = placed(places, racks_min=racks_min)
    ensemble = data.draw(st.lists(st.sampled_from(sorted(places)), min_size=size, max_size=size, unique=True))
    moves = mended(placement, ensemble, write, write)

    def adheres(bookies: list[str]) -> bool:
        return placement.adheres(bookies, write, write) is not Adherence.FAIL

    free = sorted(set(places) - set(ensemble))
    fewest = None
    for tried in product([None, *free], repeat=size):
        changed = [new or old for new, old in zip(tried, ensemble, strict=True)]
        if len(set(changed)) == size and adheres(changed):
            count = sum(new is not None for new in tried)
            fewest = count if fewest is None else min(fewest, count)
    assert not set(moves.values()) & set(ensemble)
    if fewest in (None, 0):
        assert moves == {}
    elif moves:
        assert len(moves) >= fewest
        assert adheres([moves.get(index, old) for index, old in enumerate(ensemble)])
    if fewest == 1:
        assert len(moves) == 1


def test_two_of_a_striped_ensemble() -> None:
    """Two bookies are replaced where one is not enough."""
    places = {"a1": "/a", "a2": "/a", "a3": "/a", "a4": "/a", "b1": "/b", "b2": "/b"}
    moves = mended(placed(places), ["a1", "a2", "a3", "a4"], 2, 2)
    assert sorted(moves.values()) == ["b1", "b2"]
    assert sorted(moves) in ([0, 2], [1, 3])
