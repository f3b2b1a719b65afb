"""Many entries in many ledgers, some fenced and some open: taken over from a killed Java bookie, read, and given
back.

BOOKIE_TAKEOVER_ENTRIES sets how many. The whole size is 1,000,000 in 200 ledgers, with `-o faulthandler_timeout=0`.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookie.storage.takeover.give_back import give_back
from tests.fixtures.java_peer import JavaPeer
from tests.interop.conftest import Client
from tests.interop.driver import FENCED, FLAG_FENCE
from tests.interop.java_disks import SIZE, Running, java_bookie, on_its_disks

pytestmark = pytest.mark.interop

ENTRIES = int(os.environ.get("BOOKIE_TAKEOVER_ENTRIES", "10000"))
A_LEDGER = 5000 if ENTRIES >= 200_000 else 500
AT_ONCE = 4


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Print how long it took."""
    begun = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - begun:.1f} s", flush=True)


def read_all(client: Client, ledgers: list[int], *, recovery: bool) -> None:
    """Read every entry of every ledger, several ledgers at a time."""
    for at in range(0, len(ledgers), AT_ONCE):
        handles = [
            client.call("open", ledger=ledger, recovery=recovery, password="pw")["handle"]
            for ledger in ledgers[at : at + AT_ONCE]
        ]
        ask = {"client": client.name, "first": 0, "last": A_LEDGER - 1, "size": SIZE, "step": 500}
        reads = [client.driver.submit("read", handle=handle, **ask) for handle in handles]
        for read in reads:
            found = read.result(timeout=120)
            assert (found["entries"], found["wrong"]) == (A_LEDGER, 0)


def test_many_entries_there_and_back(
    java_peer: JavaPeer, cluster_uri: str, client: Client, tmp_path: Path, running: Running
) -> None:
    """Fenced ledgers refuse adds, open ones go on, and the Java client reads all: from ours, and from Java again."""
    java = java_bookie(
        java_peer, tmp_path / "bookie", cluster_uri, "db", flushInterval="2000", logSizeLimit="1073741824"
    )
    ours = on_its_disks(java)
    running += [java, ours]
    java.start()
    writers = [client.call("create", password="pw") for _ in range(ENTRIES // A_LEDGER)]
    ledgers = [writer["ledger"] for writer in writers]
    with timed(f"{ENTRIES} entries of {SIZE} B in {len(ledgers)} ledgers written to Java"):
        ask = {"client": client.name, "n": A_LEDGER, "size": SIZE, "window": 1000}
        for at in range(0, len(writers), AT_ONCE):
            adds = [client.driver.submit("add", handle=w["handle"], **ask) for w in writers[at : at + AT_ONCE]]
            assert [add.result(timeout=120)["added"] for add in adds] == [A_LEDGER] * len(adds)
    raw: dict[str, Any] = {"bookie": java.id, "password": "pw"}
    fenced, opened, closed = ledgers[::5], ledgers[1::5], [ledger for at, ledger in enumerate(ledgers) if at % 5 > 1]
    for ledger in fenced:
        assert client.driver.call("raw_read", ledger=ledger, entry=0, flags=FLAG_FENCE, **raw)["code"] == 0
    for writer in writers:
        if writer["ledger"] in closed:
            client.call("close", handle=writer["handle"])
    java.kill()
    with timed("start of ours on these disks"):
        ours.start()
    for ledger in fenced:
        assert client.driver.call("raw_add", ledger=ledger, entry=A_LEDGER, **raw)["code"] == FENCED
    for ledger in opened[:1]:
        assert client.driver.call("raw_add", ledger=ledger, entry=A_LEDGER, lac=A_LEDGER - 1, **raw)["code"] == 0
    with timed("all read by the Java client"):
        read_all(client, closed, recovery=False)
        read_all(client, fenced + opened[1:], recovery=True)
    assert ours.stop() == 0
    with timed("given back, locations rebuilt by upstream's command, Java started"):
        give_back(java.ledgers)
        java.peer.shell(java.write_conf(), "rebuild-db-ledger-locations-index")
        java.start()
    with timed("all read from Java again"):
        read_all(client, [ledger for ledger in ledgers if ledger != opened[0]], recovery=False)
