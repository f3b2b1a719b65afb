"""An unmodified Apache BookKeeper client in V2 against bookies found through ZooKeeper: theirs and ours alike."""

import pytest

from tests.fixtures.java_peer import BATCH_READS
from tests.interop.conftest import Client
from tests.interop.driver import FENCED, FENCED_TOO_LATE, NO_SUCH_LEDGER_METADATA, Answer, JavaError
from tests.interop.targets import Start

pytestmark = pytest.mark.interop

FRAME_MAX = 5 * 1024 * 1024
# The size of an ADD frame without the payload: length word, header, master key, entry header, CRC32C.
ADD_OVERHEAD = 4 + 4 + 20 + 32 + 4


def batch_read(client: Client, **arguments: int) -> Answer:
    """Read by real batches, or singly with a client that has none."""
    if not BATCH_READS:
        arguments.pop("count", None)
        return client.call("read", **arguments)
    read = client.call("batch_read", **arguments)
    assert not read["fell_back"]
    return read


@pytest.mark.parametrize(
    ("ensemble", "write", "ack"), [(1, 1, 1), pytest.param(3, 2, 2, marks=pytest.mark.quick), (3, 3, 2)]
)
def test_the_life_of_a_ledger(start_bookies: Start, client: Client, ensemble: int, write: int, ack: int) -> None:
    """The client creates, adds, reads, batch-reads, fences by opening with recovery, is refused as the old writer,
    reads
    again and deletes.
    """
    start_bookies(ensemble)
    writer = client.call("create", e=ensemble, w=write, a=ack, password="secret")
    handle, count, size = writer["handle"], 2000, 700
    added = client.call("add", handle=handle, n=count, size=size, window=500)
    assert added["added"] == count
    assert client.call("read", handle=handle, first=0, last=count - 1, size=size)["wrong"] == 0
    batches = batch_read(client, handle=handle, first=0, last=count - 1, count=300, size=size)
    assert (batches["entries"], batches["wrong"]) == (count, 0)

    reader = client.call("open", ledger=writer["ledger"], recovery=True, password="secret")
    assert (reader["lac"], reader["length"], reader["closed"]) == (count - 1, count * size, True)
    late = client.call("add", handle=handle, n=1, size=size)
    assert late["added"] == 0
    assert late["error"]["code"] in (FENCED_TOO_LATE if ack < write else {FENCED})
    again = batch_read(client, handle=reader["handle"], first=0, last=count - 1, size=size)
    assert (again["entries"], again["wrong"]) == (count, 0)

    client.call("delete", ledger=writer["ledger"])
    with pytest.raises(JavaError) as gone:
        client.call("open", ledger=writer["ledger"], password="secret")
    assert gone.value.code == NO_SUCH_LEDGER_METADATA


@pytest.mark.since(4, 17)
def test_batches_are_really_batches(start_bookies: Start, client: Client) -> None:
    """The client falls back to single reads silently. Here it must not, and answers hold what was asked for."""
    start_bookies(1)
    handle = client.call("create")["handle"]
    client.call("add", handle=handle, n=1000, size=100)
    read = client.call("batch_read", handle=handle, first=0, last=999, count=250, size=100)
    assert (read["calls"], read["largest"], read["fell_back"], read["wrong"]) == (4, 250, False, 0)
    # 5 entries of 132 bytes after their 4-byte lengths fit into 36 + 5 * 140 bytes, a sixth does not.
    few = client.call("batch_read", handle=handle, first=0, last=99, count=100, max_size=36 + 5 * 140 + 139, size=100)
    assert (few["largest"], few["wrong"]) == (5, 0)


@pytest.mark.parametrize("digest", ["CRC32", "CRC32C", "MAC", "DUMMY"])
def test_each_digest(start_bookies: Start, client: Client, digest: str) -> None:
    """The bookie stores entries as they come, so every digest of the client verifies what it reads back."""
    start_bookies(1)
    writer = client.call("create", digest=digest, password="pw")
    client.call("add", handle=writer["handle"], n=200, size=333)
    client.call("close", handle=writer["handle"])
    reader = client.call("open", ledger=writer["ledger"], digest=digest, password="pw")
    assert batch_read(client, handle=reader["handle"], first=0, last=199, size=333)["wrong"] == 0
    assert client.call("read", handle=reader["handle"], first=0, last=199, size=333)["wrong"] == 0


def test_empty_and_large_entries(start_bookies: Start, client: Client) -> None:
    """Entries without content and the largest that the frame limit admits are stored side by side in one ledger."""
    start_bookies(1)
    handle = client.call("create")["handle"]
    largest = FRAME_MAX - ADD_OVERHEAD
    sizes = [0, 1, 7, 1 << 20, 0, largest, 3]
    for size in sizes:
        assert client.call("add", handle=handle, n=1, size=size)["added"] == 1
    for entry, size in enumerate(sizes):
        read = client.call("read", handle=handle, first=entry, last=entry, size=size)
        assert (read["entries"], read["wrong"]) == (1, 0)
    # A batch answer of one entry is 12 bytes longer than an add frame: all but the largest can be batch-read.
    batches = batch_read(client, handle=handle, first=0, last=4)
    assert (batches["entries"], batches["wrong"]) == (5, 0)


def test_an_open_ledger_tells_how_far_it_goes(start_bookies: Start, client: Client) -> None:
    """A reader without recovery follows the last confirmed entry through the bookies and leaves the writer alone."""
    start_bookies(1)
    writer = client.call("create")
    client.call("add", handle=writer["handle"], n=10, size=10, window=1)
    reader = client.call("open", ledger=writer["ledger"])
    # The last entry carries the confirmation of the one before.
    assert client.call("lac", handle=reader["handle"])["told"] == 8
    client.call("add", handle=writer["handle"], n=10, size=10, window=1)
    assert client.call("lac", handle=reader["handle"])["told"] == 18
    assert client.call("read", handle=reader["handle"], first=0, last=18, size=10)["wrong"] == 0
    assert client.call("add", handle=writer["handle"], n=1, size=10)["added"] == 1


def test_an_empty_ledger_is_recovered(start_bookies: Start, client: Client) -> None:
    """Fencing a ledger that has no entry yet closes it as empty, and its writer is refused."""
    start_bookies(3)
    writer = client.call("create", e=3, w=3, a=2)
    reader = client.call("open", ledger=writer["ledger"], recovery=True)
    assert (reader["lac"], reader["length"], reader["closed"]) == (-1, 0, True)
    assert client.call("add", handle=writer["handle"], n=1)["error"]["code"] == FENCED


def test_a_wrong_password_opens_nothing(start_bookies: Start, client: Client) -> None:
    """The client itself refuses a password that is not the ledger's."""
    start_bookies(1)
    writer = client.call("create", password="right")
    client.call("add", handle=writer["handle"], n=1)
    with pytest.raises(JavaError):
        client.call("open", ledger=writer["ledger"], password="wrong")


def test_a_bookie_that_went_away_is_replaced(start_bookies: Start, client: Client) -> None:
    """One of three bookies is killed while the writer goes on: the ensemble changes and nothing is lost."""
    bookies = start_bookies(4)
    writer = client.call("create", e=3, w=2, a=2)
    handle = writer["handle"]
    assert client.call("add", handle=handle, n=500, size=500)["added"] == 500
    before = client.call("metadata", handle=handle)["ensembles"]
    next(bookie for bookie in bookies if bookie.id in before).kill()
    assert client.call("add", handle=handle, n=500, size=500)["added"] == 500
    assert client.call("metadata", handle=handle)["ensembles"] != before
    reader = client.call("open", ledger=writer["ledger"], recovery=True)
    assert reader["lac"] == 999
    assert client.call("read", handle=reader["handle"], first=0, last=999, size=500)["wrong"] == 0
