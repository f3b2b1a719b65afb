"""An unmodified Apache BookKeeper client in V3, its default, against clusters of three bookies: theirs and ours
alike.

The bookies stand for all tests of this file, and every ledger is a test's own. What only V3 has is tried at ours
inside TLS too, with and without roles of certificates.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from bookie.client import Digest, DigestType
from tests.interop.conftest import OURS, Client, Cluster, guarded
from tests.interop.driver import (
    FENCED,
    FENCED_TOO_LATE,
    LEDGER_CLOSED,
    NO_SUCH_ENTRY,
    NO_SUCH_LEDGER_METADATA,
    Driver,
    JavaError,
)

pytestmark = pytest.mark.interop

NewClient = Callable[..., Client]
LEDGERS = 20
SIZE = 300
TAILS = [("java", False), ("java", True), ("ours", False), *((kind, True) for kind in OURS)]
"""Bookies, and whether all ledgers are followed at once."""


@pytest.fixture
def new_client(java_driver: Driver, cluster: Cluster) -> Iterator[NewClient]:
    """A maker of Java clients of the cluster, in V3 unless told otherwise; `settings` are by the client's keys."""
    made: list[Client] = []

    def make(*, v2: bool = False, **settings: str) -> Client:
        settings = {**cluster.settings, **settings}
        made.append(Client(java_driver, cluster.uri, v2=v2, batch=False, settings=settings))
        return made[-1]

    yield make
    for client in made:
        client.call("disconnect")


def test_the_life_of_a_ledger(new_client: NewClient) -> None:
    """The client creates, adds, reads, closes, opens, reads again and deletes a ledger, and fences another by opening
    it with
    recovery.
    """
    client = new_client()
    writer = client.call("create", e=3, w=2, a=2, password="pw")
    assert client.call("add", handle=writer["handle"], n=2000, size=SIZE)["added"] == 2000
    assert client.call("read", handle=writer["handle"], first=0, last=1999, size=SIZE)["wrong"] == 0
    client.call("close", handle=writer["handle"])
    reader = client.call("open", ledger=writer["ledger"], password="pw")
    assert (reader["lac"], reader["closed"]) == (1999, True)
    assert client.call("read", handle=reader["handle"], first=0, last=1999, size=SIZE)["wrong"] == 0
    client.call("delete", ledger=writer["ledger"])
    with pytest.raises(JavaError) as gone:
        client.call("open", ledger=writer["ledger"], password="pw")
    assert gone.value.code == NO_SUCH_LEDGER_METADATA

    left = client.call("create", e=3, w=3, a=2)
    assert client.call("add", handle=left["handle"], n=100, size=SIZE)["added"] == 100
    recovered = client.call("open", ledger=left["ledger"], recovery=True)
    assert (recovered["lac"], recovered["length"], recovered["closed"]) == (99, 100 * SIZE, True)
    late = client.call("add", handle=left["handle"], n=1)
    assert late["added"] == 0
    assert late["error"]["code"] in FENCED_TOO_LATE


def test_two_clients_race(new_client: NewClient) -> None:
    """While one writes, another recovers: the ledger ends after everything acknowledged, and all of it can be read."""
    writing, recovering = new_client(), new_client()
    for _ in range(3):
        writer = writing.call("create", e=3, w=2, a=2)
        with ThreadPoolExecutor(1) as threads:
            adding = threads.submit(writing.call, "add", handle=writer["handle"], n=200_000, size=100, window=200)
            while writing.call("progress", handle=writer["handle"])["acknowledged"] < 500:
                pass
            reader = recovering.call("open", ledger=writer["ledger"], recovery=True)
            added = adding.result()
        assert added["error"]["code"] in {FENCED, LEDGER_CLOSED}
        assert reader["lac"] >= added["last"]
        assert recovering.call("read", handle=reader["handle"], first=0, last=reader["lac"], size=100)["wrong"] == 0


@guarded
def test_deferred_sync(new_client: NewClient) -> None:
    """Unsynced adds do not move the LAC until force does, and then readers see them."""
    client = new_client()
    writer = client.call("create", e=3, w=3, a=2, deferred=True)
    assert client.call("add", handle=writer["handle"], n=100, size=SIZE)["added"] == 100
    assert client.call("lac", handle=writer["handle"])["local"] == -1
    assert client.call("force", handle=writer["handle"])["lac"] == 99
    assert client.call("add", handle=writer["handle"], n=1, size=SIZE)["added"] == 1
    reader = client.call("open", ledger=writer["ledger"])
    assert client.call("lac", handle=reader["handle"])["told"] == 99
    assert client.call("read", handle=reader["handle"], first=0, last=99, size=SIZE)["wrong"] == 0


@guarded
@pytest.mark.parametrize("v2", [False, True], ids=["v3", "v2"])
def test_explicit_lacs(new_client: NewClient, v2: bool) -> None:
    """A writer that pauses publishes its last entry, and a reader waits for it. V2's client has a second connection."""
    writing, reading = new_client(v2=v2, explicitLacInterval="20"), new_client()
    writer = writing.call("create", e=3, w=3, a=2)
    reader = reading.call("open", ledger=writer["ledger"])
    assert writing.call("add", handle=writer["handle"], n=10, size=SIZE)["added"] == 10
    tail = reading.call("tail", handles=[reader["handle"]], last=9, timeout_ms=30_000)
    assert (tail["entries"], tail["wrong"]) == (10, [])
    reported, deadline = -1, time.monotonic() + 30
    while reported != 9 and time.monotonic() < deadline:  # one bookie has the tail; a quorum may follow later
        reported = reading.call("explicit_lac", handle=reader["handle"])["lac"]
    assert reported == 9


@pytest.mark.parametrize(("cluster", "parallel"), TAILS, indirect=["cluster"], ids=str, scope="module")
def test_tailing(new_client: NewClient, parallel: bool) -> None:
    """20 ledgers are followed by long polls while they are written: every entry comes once, in order, as written."""
    writing, reading = new_client(explicitLacInterval="50"), new_client()
    last = 99
    writers = [writing.call("create", e=3, w=2, a=2) for _ in range(LEDGERS)]
    for writer in writers:  # a bookie that never had an entry of a ledger does not wait for it
        writing.call("add", handle=writer["handle"], n=3, size=SIZE)
    readers = [reading.call("open", ledger=writer["ledger"])["handle"] for writer in writers]
    with ThreadPoolExecutor(LEDGERS + 1) as threads:
        tailing = threads.submit(reading.call, "tail", handles=readers, last=last, timeout_ms=5000, parallel=parallel)
        list(
            threads.map(
                lambda writer: writing.call("add", handle=writer["handle"], n=last - 2, size=SIZE, window=3), writers
            )
        )
        tail = tailing.result()
    assert tail["wrong"] == []
    assert tail["entries"] == LEDGERS * (last + 1)


DIGEST = Digest.of(DigestType.CRC32C, b"pw")


@guarded
@pytest.mark.parametrize("v2", [False, True], ids=["v3", "v2"])
def test_single_requests(java_driver: Driver, cluster: Cluster, v2: bool) -> None:
    """What only V3 has, request by request. A client in V2 sends it on a second connection, but refuses to force."""
    common: dict[str, Any] = {"bookie": cluster.bookies[0].id, "ledger": 880_000 + v2, "password": "pw"}

    def call(op: str, **arguments: Any) -> dict[str, Any]:
        return java_driver.call(op, **{**common, "v2": v2, "settings": cluster.settings, **arguments})

    assert call("raw_read_lac")["code"] == NO_SUCH_ENTRY
    for entry in range(3):
        assert call("raw_add", entry=entry, lac=entry - 1, length=16 * (entry + 1))["code"] == 0
    last = call("raw_read", entry=-1)["data"]
    assert call("raw_read_lac") == {"code": 0, "last": last}
    assert call("raw_write_lac", lac=2)["code"] == 0
    assert call("raw_read_lac") == {"code": 0, "last": last, "lac": DIGEST.seal_lac(common["ledger"], 2).hex()}
    info = call("raw_info")
    assert info["code"] == 0
    assert 0 < info["free"] <= info["total"]
    assert call("raw_info", requested=3 + 256).keys() == info.keys(), "the fields of our extension do not disturb it"
    if not v2:
        assert call("raw_force")["code"] == 0
        polled = call("raw_poll", previous=1, timeout_ms=30_000)
        assert (polled["code"], polled["entry"], polled["data"]) == (0, 2, last)
        assert call("raw_poll", previous=2, timeout_ms=10)["entry"] == -1


@guarded
def test_list_of_entries(java_driver: Driver, cluster: Cluster) -> None:
    """Java's client understands our list of entries, and would have encoded it the same."""
    if cluster.kind == "java":
        return  # its storage never answers
    common: dict[str, Any] = {
        "bookie": cluster.bookies[0].id,
        "ledger": 890_000,
        "password": "pw",
        "v2": False,
        "settings": cluster.settings,
    }
    stored = [0, 1, 2, 5, 6, 8]
    for entry in stored:
        assert java_driver.call("raw_add", entry=entry, **common)["code"] == 0
    listed = java_driver.call("raw_list", last=10, **common)
    assert (listed["ids"], listed["count"]) == (stored, len(stored))
