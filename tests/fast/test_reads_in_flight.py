"""Test the unanswered single reads of a connection: each response goes to its run, once."""

from typing import Any

import numpy as np
import pytest

from bookie._fast.client import framing_v2
from bookie._fast.client.read_run import ReadRun
from bookie._fast.client.reads_in_flight import ReadsInFlight
from bookie.client import Digest
from bookie.pb import wire_pb2 as pb

DIGEST = Digest.of(password=b"secret")
LIMIT = 1 << 20
READ_V2, READ_V3, ADD_V2 = 2, 1, 1


def ids(*entries: int) -> Any:
    """Return entry ids as an array."""
    return np.array(entries, dtype=np.int64)


def sealed(entry: int) -> bytes:
    """Return an entry of ledger 7 as it is stored."""
    return DIGEST.seal(7, entry, b"entry %d" % entry, lac=entry - 1, length=0)


def rows(*named: tuple[int, int, int, int, int, int, int]) -> Any:
    """Return a table of (op, code, ledger, entry, transaction, body_at, body_size)."""
    return np.array(list(named), dtype=framing_v2.RESPONSE)


def test_answers_find_their_runs() -> None:
    """BR11: V2 responses are matched by name, and surplus ones are left. A run is complete when all have answered."""
    reads = ReadsInFlight(by_transaction=False)
    run, other = ReadRun(7, ids(3, 5, 9)), ReadRun(8, ids(3))
    reads.ask(1, run, 0, 10)
    reads.ask(2, other, 0, 20)
    assert reads.knows(7, ids(4, 5))
    received = sealed(9) + sealed(3)
    size = len(sealed(9))
    table = rows(
        (READ_V2, 0, 7, 9, 0, 0, size),
        (READ_V2, 0, 7, 9, 0, size, size),  # a second response
        (ADD_V2, 0, 7, 3, 0, 0, 0),
        (READ_V2, 2, 7, 5, 0, 0, 0),
        (READ_V2, 0, 7, 3, 0, size, size),
    )
    assert reads.pick(table, 5, received, LIMIT) == (2, [1])
    assert table[:2]["op"].tolist() == [READ_V2, ADD_V2]
    assert (run.left, run.failures(), reads.count) == (0, [(5, 2)], 1)
    assert [run.stored(entry) for entry in (3, 5, 9, 4)] == [sealed(3), None, sealed(9), None]
    assert [reads.overdue(now) for now in (19, 20)] == [[], [2]]
    reads.leave(2)
    assert reads.knows(8, ids(3))  # the name is taken until the response arrives
    assert reads.pick(rows((READ_V2, 0, 8, 3, 0, 0, size)), 1, received, LIMIT) == (0, [])
    assert (reads.count, other.left) == (0, 1)


def test_odd_answers() -> None:
    """A response that has no entry, is torn, too large, or has an unknown code gets a code of its own."""
    for by_transaction, op in ((False, READ_V2), (True, READ_V3)):
        reads = ReadsInFlight(by_transaction=by_transaction)
        run = ReadRun(7, ids(1, 2, 3, 4))
        reads.ask(1, run, 100, 10)
        header = pb.BKPacketHeader(version=pb.VERSION_THREE, operation=pb.READ_ENTRY, txnId=3)
        part = pb.ReadResponse(status=pb.EOK, ledgerId=7, entryId=5)
        empty = pb.Response(header=header, status=pb.EOK, readResponse=part).SerializeToString()
        table = rows(
            (op, 0, 7, 1, 100, 0, len(empty)),
            (op, 0, 7, 2, 101, 1, len(empty) - 1),
            (op, 0, 7, 3, 102, 0, LIMIT + 1),
            (op, -7, 7, 4, 103, 0, 0),
        )
        assert reads.pick(table, 4, empty, LIMIT) == (0, [1])
        codes = dict(run.failures())
        assert codes == ({3: -3, 4: -2} if not by_transaction else {1: -1, 2: -2, 3: -3, 4: -2})


def test_bad_arguments() -> None:
    """A count above the number of rows is refused."""
    with pytest.raises(ValueError, match="count is 2"):
        ReadsInFlight(by_transaction=True).pick(rows((1, 0, 0, 0, 0, 0, 0)), 2, b"x", LIMIT)
