"""Kills bookies under the Java client: every entry that it was told is stored must be there afterwards (B1, B3).

The largest test is here: a million entries, a kill, and a batch read of all of them with nothing missing.
"""

import threading

import pytest

from tests.interop.conftest import Client
from tests.interop.targets import Start

pytestmark = pytest.mark.interop

MILLION = 1_000_000
SHORT = {"zkTimeout": "4000"}
"""How long a restart waits for the registration of the killed process to expire."""


@pytest.mark.slow
def test_a_million_entries_outlive_a_kill(start_ours: Start, client: Client) -> None:
    """After a million entries of 1 KiB, a kill, a restart and a recovery, a batch read finds each with its content."""
    bookie = start_ours(1, **SHORT)[0]
    writer = client.call("create", password="main job")
    added = client.call("add", handle=writer["handle"], n=MILLION, size=1024, window=2000, seconds=900)
    assert added["added"] == MILLION
    bookie.kill()
    bookie.start()
    reader = client.call("open", ledger=writer["ledger"], recovery=True, password="main job")
    assert (reader["lac"], reader["length"]) == (MILLION - 1, MILLION * 1024)
    read = client.call(
        "batch_read", handle=reader["handle"], first=0, last=MILLION - 1, count=500, size=1024, seconds=900
    )
    print(f"adds {added['rate']:.0f}/s, batch reads {read['rate']:.0f} entries/s")
    assert (read["entries"], read["bytes"], read["wrong"]) == (MILLION, MILLION * 1024, 0)
    assert (read["largest"], read["fell_back"]) == (500, False)


@pytest.mark.parametrize("entries_before_kill", [1, 3000, 20_000])
def test_acknowledged_entries_outlive_a_kill_while_writing(
    start_bookies: Start, client: Client, entries_before_kill: int
) -> None:
    """The bookie is killed during adds, and recovery closes the ledger at or after the acknowledged entries."""
    bookie = start_bookies(1, **SHORT)[0]
    writer = client.call("create")
    adding = client.driver.submit("add", handle=writer["handle"], n=MILLION, size=300, window=500)
    pause = threading.Event()
    while client.call("progress", handle=writer["handle"])["acknowledged"] < entries_before_kill:
        assert not adding.done()
        pause.wait(0.001)
    bookie.kill()
    added = adding.result(timeout=120)
    assert added["error"]["code"] != 0
    bookie.start()
    reader = client.call("open", ledger=writer["ledger"], recovery=True)
    assert reader["lac"] >= added["last"] >= entries_before_kill - 1
    read = client.call("batch_read", handle=reader["handle"], first=0, last=reader["lac"], count=1000, size=300)
    assert (read["entries"], read["wrong"]) == (reader["lac"] + 1, 0)


def test_kills_again_and_again(start_ours: Start, client: Client) -> None:
    """After several kills and restarts on the same directories, each of several ledgers is whole."""
    bookie = start_ours(1, **SHORT)[0]
    ledgers = []
    for _ in range(4):
        writer = client.call("create")
        assert client.call("add", handle=writer["handle"], n=2000, size=900, window=500)["added"] == 2000
        ledgers.append(writer["ledger"])
        bookie.kill()
        bookie.start()
    for ledger in ledgers:
        reader = client.call("open", ledger=ledger, recovery=True)
        read = client.call("batch_read", handle=reader["handle"], first=0, last=1999, count=500, size=900)
        assert (reader["lac"], read["entries"], read["wrong"]) == (1999, 2000, 0)
