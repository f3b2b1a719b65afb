"""Test the hash table by ledger id (base.by_ledger) against a dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.base.by_ledger import Table

LEDGERS = st.one_of(st.integers(0, 40), st.integers(-(1 << 63), (1 << 63) - 1))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), LEDGERS, st.integers(0, 9)),
        st.tuples(st.just("drop"), LEDGERS, st.just(0)),
        st.tuples(st.just("find"), LEDGERS, st.just(0)),
        st.tuples(st.just("clear"), st.just(0), st.just(0)),
    ),
    max_size=200,
)


@given(STEPS)
def test_as_a_dict(steps: list[tuple[str, int, int]]) -> None:
    """Putting, finding, dropping and clearing in any order gives the same results as a dictionary."""
    table, model = Table(), dict[int, int]()
    for step, ledger, value in steps:
        if step == "put":
            table.put(ledger, value)
            model[ledger] = value
        elif step == "drop":
            assert table.drop(ledger) == (model.pop(ledger, None) is not None)
        elif step == "find":
            assert table.find(ledger) == model.get(ledger)
        else:
            table.clear()
            assert [table.find(one) for one in model] == [None] * len(model)
            model.clear()
        assert len(table) == len(model)
    assert {ledger: table.find(ledger) for ledger in model} == model


def test_growth_keeps_all() -> None:
    """Nothing is lost while the table grows to many times its first number of buckets, with ids that collide."""
    table = Table()
    ids = [way * 16 + rest for rest in range(16) for way in range(1000)]
    for ledger in ids:
        table.put(ledger, ledger * 3)
    assert [table.find(ledger) for ledger in ids] == [ledger * 3 for ledger in ids]
    assert all(table.drop(ledger) for ledger in ids[::2])
    assert [table.find(ledger) for ledger in ids] == [None if at % 2 == 0 else ids[at] * 3 for at in range(len(ids))]
    assert len(table) == len(ids) // 2
