"""Sends the same requests to Apache BookKeeper's bookie and to ours on the socket: the answers are equal byte for
byte.

Java's list of entries comes from its sorted storage, because the storage that the other tests use has none.
"""

import random

import pytest

from bookie.pb import wire_pb2 as pb
from tests.interop.conftest import Standing
from tests.interop.proxy import read_frame
from tests.interop.raw import Wire
from tests.interop.statuses import DIGEST, ENOLEDGER, EOK, KEY, list_entries
from tests.reference import wire_v2 as v2

pytestmark = pytest.mark.interop

SORTED = {"ledgerStorageClass": "org.apache.bookkeeper.bookie.SortedLedgerStorage"}
SHAPES = {
    "none": [],
    "one": [0],
    "one, late": [70],
    "all": list(range(200)),
    "every third": list(range(0, 300, 3)),
    "runs with holes": [*range(5), *range(9, 14), *range(18, 23), 40, 41, *range(100, 130)],
    "anywhere": sorted(random.Random(5).sample(range(2000), 300)),
    "in another order": [7, 3, 4, 5, 9, 8, 1],
}


def stored(ledger: int, entry: int, payload: bytes = b"x") -> bytes:
    """Return an entry of the ledger as it is stored."""
    return DIGEST.seal(ledger, entry, payload, lac=entry - 1, length=len(payload))


@pytest.mark.parametrize("shape", SHAPES)
def test_lists_of_entries(standing: Standing, shared_cluster_uri: str, shape: str) -> None:
    """For runs, periods and single entries both write the same condensed list."""
    ledger = 880_000 + list(SHAPES).index(shape)
    answers = []
    for bookie in (standing("java", shared_cluster_uri, **SORTED), standing("ours", shared_cluster_uri)):
        with Wire(bookie.port) as old:
            for entry in SHAPES[shape]:
                assert old.ask_v2(v2.Request(v2.ADD, key=KEY, body=stored(ledger, entry))).code == 0
        with Wire(bookie.port) as wire:
            wire.send(pb.GET_LIST_OF_ENTRIES_OF_LEDGER, getListOfEntriesOfLedgerRequest=list_entries(ledger))
            answers.append(read_frame(wire.sock))
    assert answers[0] == answers[1]
    assert pb.Response.FromString(answers[0][4:]).status == (EOK if SHAPES[shape] else ENOLEDGER)
