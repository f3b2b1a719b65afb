"""Apache BookKeeper's own readers on what our bookie wrote: `bookkeeper shell` over its files, and its znodes.

The shell is a fresh process on our directories, as an operator would run it who moves between the two.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from bookie.metadata.bookies.service_info import OUR_PROPERTIES, BookieServiceInfo, bookie_endpoint
from tests.fixtures.java_peer import VERSION, JavaPeer
from tests.fixtures.java_process import JavaBookie
from tests.interop.conftest import Client
from tests.interop.targets import Start, Target

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(VERSION.startswith("4.17"), reason="the shell of 4.17 prints records in another form"),
]

ENTRY = re.compile(r"Entry \{entryId=(-?\d+), entrySize=(\d+), ledgerId=(-?\d+), position=(\d+)\}")
KEY_OF_EMPTY = "850bf1071c5e3d8c24235676f8816ae0cbe2f14f"
COUNT, SIZE = 300, 1000
HEADER = 36


class Shell:
    """`bookkeeper shell` on the directories of a bookie of ours."""

    def __init__(self, peer: JavaPeer, bookie: Target, uri: str, directory: Path) -> None:
        directories = {"journalDirectories": str(bookie.journal), "ledgerDirectories": str(bookie.ledgers)}
        self._peer = peer
        self._conf = JavaBookie(peer, directory, bookie.port, uri, directories).write_conf()

    def __call__(self, *command: str) -> str:
        return self._peer.shell(self._conf, *command)


@pytest.fixture
def written(start_ours: Start, client: Client) -> tuple[Target, int]:
    """A bookie of ours, killed, and the ledger that it holds: 300 entries, then fenced."""
    bookie = start_ours(1)[0]
    writer = client.call("create")
    client.call("add", handle=writer["handle"], n=COUNT, size=SIZE, window=50)
    client.call("open", ledger=writer["ledger"], recovery=True)
    return bookie, writer["ledger"]


def entries(text: str) -> list[tuple[int, int, int]]:
    """Return (ledger, entry, size) of each record in the output of readlog or readjournal."""
    return [(int(ledger), int(entry), int(size)) for entry, size, ledger, _ in ENTRY.findall(text)]


def test_java_reads_our_journal(
    written: tuple[Target, int], java_peer: JavaPeer, cluster_uri: str, tmp_path: Path
) -> None:
    """`readjournal` shows the key, every entry and the fence, in order, and skips the checksums that end our groups."""
    bookie, ledger = written
    bookie.kill()
    shell = Shell(java_peer, bookie, cluster_uri, tmp_path / "shell")
    output = ""
    for journal in sorted((bookie.journal / "current").glob("*.txn"), key=lambda path: int(path.stem, 16)):
        output += shell("readjournal", str(int(journal.stem, 16)))
    found = entries(output)
    assert "Journal Version {journalVersion=6}" in output
    assert f"masterKey={KEY_OF_EMPTY}" in output
    kinds = [entry for _, entry, _ in found]
    fence = kinds.index(-0x2000)
    assert kinds[:fence] == [-0x1000, *range(COUNT)]
    assert set(kinds[fence + 1 :]) <= set(range(COUNT)), "recovery writes the unconfirmed tail again"
    assert {(of, size) for of, entry, size in found if entry >= 0} == {(ledger, HEADER + SIZE)}


def test_java_reads_our_entry_logs(
    written: tuple[Target, int], java_peer: JavaPeer, cluster_uri: str, tmp_path: Path
) -> None:
    """After a clean stop, `readlog` and `readlogmetadata` show every entry, and what each log holds of each ledger."""
    bookie, ledger = written
    bookie.stop()
    shell = Shell(java_peer, bookie, cluster_uri, tmp_path / "shell")
    found, total = [], 0
    for log in sorted((bookie.ledgers / "current").glob("*.log"), key=lambda path: int(path.stem, 16)):
        found += entries(shell("readlog", str(int(log.stem, 16))))
        reported = shell("readlogmetadata", str(int(log.stem, 16)))
        total += sum(int(size) for size in re.findall(rf"ledgerId={ledger}, size=(\d+)", reported))
    assert found == [(ledger, entry, HEADER + SIZE) for entry in range(COUNT)]
    assert total == COUNT * (4 + HEADER + SIZE)


def test_java_reads_our_mark(
    written: tuple[Target, int], java_peer: JavaPeer, cluster_uri: str, tmp_path: Path
) -> None:
    """After a clean stop `lastmark` names our journal, and nothing lies after the mark."""
    bookie, _ = written
    bookie.stop()
    shell = Shell(java_peer, bookie, cluster_uri, tmp_path / "shell")
    journal, name, position = re.findall(r"Journal Id - (\d+)\(([0-9a-f]+)\.txn\), Pos - (\d+)", shell("lastmark"))[0]
    assert int(name, 16) == int(journal)
    path = bookie.journal / "current" / f"{name}.txn"
    assert path.exists()
    behind = path.read_bytes()[int(position) :]
    assert not behind.strip(b"\0")


def test_our_znodes_are_javas(
    start_ours: Start, start_java: Start, zookeeper: Any, cluster_uri: str, java_peer: JavaPeer
) -> None:
    """Cookie, VERSION and registration of ours differ from Java's in nothing but port, paths and what we advertise."""
    bookies = [(start_java(1)[0], {}), (start_ours(1)[0], OUR_PROPERTIES)]
    root = cluster_uri.partition(zookeeper.address)[2]
    store = KazooClient(zookeeper.address)
    store.start()
    seen = []
    for bookie, properties in bookies:
        cookie = store.get(f"{root}/cookies/{bookie.id}")[0]
        assert (bookie.journal / "current" / "VERSION").read_bytes() == cookie
        assert (bookie.ledgers / "current" / "VERSION").read_bytes() == cookie
        endpoint = bookie_endpoint("127.0.0.1", bookie.port)
        assert store.get(f"{root}/available/{bookie.id}")[0] == BookieServiceInfo((endpoint,), properties).to_bytes()
        names = (str(bookie.journal), "JOURNAL"), (str(bookie.ledgers), "LEDGERS"), (bookie.id, "ID")
        for value, name in names:
            cookie = cookie.replace(value.encode(), name.encode())
        seen.append(cookie)
    store.stop()
    store.close()
    assert seen[0] == seen[1]


def test_java_lists_our_bookie(start_ours: Start, java_peer: JavaPeer, cluster_uri: str, tmp_path: Path) -> None:
    """`listbookies` finds ours as a writable one, and `cookie_get` prints its cookie."""
    bookie = start_ours(1)[0]
    shell = Shell(java_peer, bookie, cluster_uri, tmp_path / "shell")
    assert bookie.id in shell("listbookies", "-rw")
    assert f'bookieHost: "{bookie.id}"' in shell("cookie_get", bookie.id)
