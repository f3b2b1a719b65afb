"""The way back: a real Java bookie (DbLedgerStorage) starts on our disks, by the commands of docs/operations.md."""

from pathlib import Path

import pytest

from bookie.client import ChannelV3, Digest, Extensions
from bookie.client.wire.extensions import WRITE_CLOSE
from bookie.storage.takeover.give_back import give_back
from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.java_process import JavaBookie
from tests.interop.conftest import Client
from tests.interop.driver import FENCED, FLAG_FENCE
from tests.interop.java_disks import Content, Ended, Running, explicit_lac, java_bookie, on_its_disks, wait_for

pytestmark = pytest.mark.interop

LOCATIONS = "rebuild-db-ledger-locations-index"
LEDGERS = "rebuild-db-ledgers-index"


def start_java(java: JavaBookie, *commands: str) -> None:
    """Run upstream's commands over the directories, then the bookie."""
    conf = java.write_conf()
    for command in commands:
        java.peer.shell(conf, command)
    java.start()


def add_after_fence(content: Content, name: str) -> int:
    """Return the code of an add to a ledger that should be fenced."""
    ask = {"ledger": content.ledgers[name], "entry": content.counts[name]}
    return int(content.client.driver.call("raw_add", bookie=content.bookie, password="pw", **ask)["code"])


since_command = pytest.mark.since(4, 15)
"""LEDGERS is younger than Apache BookKeeper 4.14."""


@pytest.mark.parametrize("way", ["ours", pytest.param("upstream", marks=since_command)])
def test_a_java_bookie_goes_on_where_ours_stopped(ended: Ended, way: str, running: Running) -> None:
    """It serves what Java stored before, what ours stored, and the fences of both. Our command keeps ledgers open."""
    java, content = ended("db", "stop")
    ours = on_its_disks(java)
    running.append(ours)
    ours.start()
    content.find_bookie()
    content.add("open", 20)
    for name in ("new", "new and fenced", "new and open"):
        content.write(name, 500)
    content.client.call("close", handle=content.handles["new"])
    assert content.raw_read("new and fenced", 0, FLAG_FENCE) == 0
    assert ours.stop() == 0
    if way == "ours":
        assert give_back(java.ledgers) >= 7
        start_java(java, LOCATIONS)
        content.find_bookie()
        for name in ("open", "new and open"):
            content.add(name, 10)
        assert explicit_lac(java.port, content.ledgers["lac"]) == 42
    else:
        start_java(java, LEDGERS, LOCATIONS)
        content.find_bookie()
        assert add_after_fence(content, "open") == FENCED
    for name in ("fenced", "new and fenced"):
        assert add_after_fence(content, name) == FENCED
    for name in ("closed", "new"):
        content.check(name, recovery=False)
    for name in ("open", "fenced", "lac", "rest", "new and fenced", "new and open"):
        content.check(name, recovery=True)
    java.stop()
    with pytest.raises(AssertionError, match=r"a Java bookie .* ran here after this one"):
        ours.start()
    (java.ledgers / "current" / "locations.lmdb").rename(java.directory / "aside")
    ours.start()
    content.find_bookie()
    for name in ("open", "new and open", "rest"):
        content.check(name, recovery=False)


def complete_logs(directory: Path) -> set[str]:
    """Return the entry logs whose header says where their ledgers map lies, which means that they were closed."""
    return {log.name for log in (directory / "current").glob("*.log") if any(log.read_bytes()[8:16])}


@since_command
def test_a_bookie_of_ours_becomes_a_java_bookie(
    java_peer: JavaPeer, cluster_uri: str, client: Client, tmp_path: Path, running: Running
) -> None:
    """One that was never Java's becomes one by upstream's commands alone, because there is no RocksDB to replace.
    Each
    ledger has logs of its own (BP-32), one of them two: its first was closed when its end was announced, and more
    entries came all the same.
    """
    java = java_bookie(java_peer, tmp_path / "bookie", cluster_uri, "db")
    ours = on_its_disks(java, entryLogPerLedgerEnabled="true", flushInterval="100")
    running += [java, ours]
    ours.start()
    content = Content(client, java.id)
    for name in ("closed", "open"):
        content.write(name, 1000)
    with ChannelV3.connect(*ours.address) as channel:
        channel.extensions = Extensions((WRITE_CLOSE,))
        channel.write_close(content.ledgers["open"], Digest.of(password=b"pw").master_key)
    wait_for(lambda: len(complete_logs(java.ledgers)) == 1, "the log of a ledger whose end was announced stays open")
    content.add("open", 500)
    content.client.call("close", handle=content.handles["closed"])
    assert ours.stop() == 0
    assert len(list((java.ledgers / "current").glob("*.log"))) >= 3
    for name in ("ledgers", "locations"):
        (java.ledgers / "current" / name).mkdir()
    start_java(java, LEDGERS, LOCATIONS)
    content.find_bookie()
    content.check("closed", recovery=False)
    content.check("open", recovery=True)
