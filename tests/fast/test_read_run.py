"""Test responses to single reads against a dictionary: ranges are composed of the runs of several replicas."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.client.read_run import ReadRange, ReadRun
from bookie.client import Digest
from tests.reference import record as model

DIGEST = Digest.of(password=b"secret")


def ids(*entries: int) -> Any:
    """Return entry ids as an array."""
    return np.array(entries, dtype=np.int64)


def sealed(entry: int, payload: bytes = b"") -> bytes:
    """Return an entry of ledger 7 as it is stored."""
    return DIGEST.seal(7, entry, payload or b"entry %d" % entry, lac=entry - 1, length=0)


@given(
    st.dictionaries(st.integers(0, 60), st.binary(min_size=1, max_size=80), min_size=1),
    st.randoms(use_true_random=False),
    st.data(),
)
def test_a_range_of_several_runs(payloads: dict[int, bytes], chance: Any, data: st.DataObject) -> None:
    """Replicas answer in any order, with damaged and missing entries; each entry that one has intact is there once."""
    wanted = ids(*sorted(payloads))
    entries = ReadRange(7, 0, 61)
    good: set[int] = set()
    for _ in range(3):
        run = ReadRun(7, entries.missing(wanted))
        assert set(run.entries.tolist()) == set(payloads) - good
        order = run.entries.tolist()
        chance.shuffle(order)
        before = len(good)
        for entry in order:
            fate = data.draw(st.sampled_from(["good", "good", "damaged", "missing", "unanswered", "other"]))
            stored = sealed(entry, payloads[entry])
            if fate == "good":
                run.answer(entry, 0, stored, entry)
                run.answer(entry, 5, None)  # only the first response counts
                good.add(entry)
            elif fate == "damaged":
                run.answer(entry, 0, stored[:-1] + bytes([stored[-1] ^ 1]))
            elif fate == "other":
                run.answer(entry, 0, sealed(entry + 1))
            elif fate == "missing":
                run.answer(entry, 2)
        assert entries.take(run, DIGEST.digester) == len(good) - before
        assert entries.take(run, DIGEST.digester) == 0
        assert all(code == 2 for _, code in run.failures())
        del run
    assert entries.found == len(good)
    assert {entry for entry in range(-1, 62) if entry in entries} == good
    prefix = next(entry for entry in range(62) if entry not in good)
    run_of_prefix, offsets = entries.run(prefix)
    expected = model.pack([sealed(entry, payloads[entry]) for entry in range(prefix)])
    assert run_of_prefix.tobytes() == expected
    assert offsets[-1] == len(expected)
    with pytest.raises(ValueError, match=f"entry {prefix} is missing|count is {prefix + 1}"):
        entries.run(prefix + 1)


def test_bad_arguments() -> None:
    """Entries must ascend, responses must have been requested, and a range checks ledger and entry ids."""
    with pytest.raises(ValueError, match="entry 4 follows 4"):
        ReadRun(7, ids(1, 4, 4))
    with pytest.raises(ValueError, match="entry 2 was not requested"):
        ReadRun(7, ids(1)).answer(2, 0, b"")
    entries = ReadRange(7, 5, 2)
    with pytest.raises(ValueError, match="responses are of ledger 8"):
        entries.take(ReadRun(8, ids(5)), DIGEST.digester)
    with pytest.raises(ValueError, match="entry 7 is not one of the 2 from 5 on"):
        entries.missing(ids(5, 7))
