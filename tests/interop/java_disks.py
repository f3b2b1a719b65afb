"""A Java bookie with a known content that ends, and one of ours on the directories that it leaves."""

import hashlib
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bookie.pb import wire_pb2 as pb
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.java_peer import JavaPeer
from tests.fixtures.java_process import SMALL, JavaBookie
from tests.fixtures.ports import free_port
from tests.interop.driver import FLAG_FENCE, NO_BOOKIE_HANDLE, NO_SUCH_LEDGER, Answer, Driver, JavaError
from tests.interop.raw import Wire

PACKAGE = "org.apache.bookkeeper.bookie."
DB = {"ledgerStorageClass": PACKAGE + "storage.ldb.DbLedgerStorage"}
KINDS: dict[str, dict[str, str]] = {
    "db": DB,
    "db, two directories": {**DB, "dirs": "2"},
    "db, direct I/O": {**DB, "dbStorage_directIOEntryLogger": "true"},
    "interleaved": {"ledgerStorageClass": PACKAGE + "InterleavedLedgerStorage"},
    "sorted": {"ledgerStorageClass": PACKAGE + "SortedLedgerStorage"},
}
QUICK = {"zkTimeout": "4000", "flushInterval": "500", "gcWaitTime": "500", "logSizeLimit": "2000000"}
WAIT_S = 60.0
SIZE = 200
FILL = 6000


def wait_for(ready: Callable[[], bool], what: str) -> None:
    """Ask until the answer is true, and raise AssertionError when that takes too long."""
    deadline = time.monotonic() + WAIT_S
    pause = threading.Event()
    while not ready():
        assert time.monotonic() < deadline, what
        pause.wait(0.02)


def java_bookie(peer: JavaPeer, directory: Path, uri: str, kind: str, **more: str) -> JavaBookie:
    """Make a Java bookie of that storage kind, without starting it."""
    settings = {**SMALL, **QUICK, **KINDS[kind], **more}
    count = int(settings.pop("dirs", "1"))
    if count > 1:
        settings["ledgerDirectories"] = ",".join(str(directory / f"ledgers-{i}") for i in range(count))
        settings["journalDirectories"] = ",".join(str(directory / f"journal-{i}") for i in range(count))
    return JavaBookie(peer, directory, free_port(), uri, settings)


def directories(bookie: JavaBookie, key: str) -> list[Path]:
    """Return the directories of `ledgerDirectories` or `journalDirectories`."""
    otherwise = bookie.ledgers if key == "ledgerDirectories" else bookie.journal
    return [Path(part) for part in bookie.settings.get(key, str(otherwise)).split(",")]


def on_its_disks(java: JavaBookie, **settings: str) -> BookieProcess:
    """Make a bookie of ours, not started, with the identity and the directories of a Java bookie that has ended."""
    names = ("ledgerDirectories", "journalDirectories")
    paths = {name: ",".join(map(str, directories(java, name))) for name in names}
    return BookieProcess(java.directory, java.uri, {"bookiePort": str(java.port), **paths, **settings})


def hashes(bookie: JavaBookie) -> dict[str, tuple[str, int]]:
    """Return the content hash and the modification time of every file of its RocksDBs and index files."""
    roots = [path / "current" for path in directories(bookie, "ledgerDirectories")]
    names = ("ledgers/*", "locations/*", "**/*.idx")
    files = [file for root in roots for name in names for file in sorted(root.glob(name))]
    return {str(file): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns) for file in files}


class Caller(Protocol):
    """A Java client such as the fixture `client`."""

    driver: Driver

    def call(self, op: str, *, seconds: float = 120, **arguments: Any) -> Answer:
        """Run one operation."""


Running = list[JavaBookie | BookieProcess]


@dataclass
class Content:
    """Ledgers by name, as the client that wrote them knows them."""

    client: Caller
    bookie: str
    ledgers: dict[str, int] = field(default_factory=dict)
    handles: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def write(self, name: str, count: int) -> None:
        """Write a new ledger."""
        made = self.client.call("create", password="pw")
        self.ledgers[name], self.handles[name] = made["ledger"], made["handle"]
        self.counts[name] = 0
        self.add(name, count)

    def add(self, name: str, count: int) -> None:
        """Add more entries through the writer's handle."""
        added = self.client.call("add", handle=self.handles[name], n=count, size=SIZE, window=500)
        assert added["added"] == count, added
        self.counts[name] += count

    def find_bookie(self) -> None:
        """Wait until the client knows that the bookie is back. Below 4.17 it relies on its watch alone."""
        opened = self.client.call("open", ledger=self.ledgers["closed"], recovery=False, password="pw")

        def found() -> bool:
            try:
                self.client.call("read", handle=opened["handle"], first=0, last=0)
            except JavaError as error:
                if error.code != NO_BOOKIE_HANDLE:
                    raise
                return False
            return True

        wait_for(found, "the client does not find the bookie")

    def raw_read(self, name: str, entry: int, flags: int = 0) -> int:
        """Return the code that one READ is answered with."""
        ledger = self.ledgers[name]
        ask: dict[str, Any] = {
            "bookie": self.bookie,
            "ledger": ledger,
            "entry": entry,
            "flags": flags,
            "password": "pw",
        }
        return int(self.client.driver.call("raw_read", **ask)["code"])

    def check(self, name: str, *, recovery: bool) -> None:
        """Open the ledger with the Java client and read every entry."""
        call, count = self.client.call, self.counts[name]
        opened = call("open", ledger=self.ledgers[name], recovery=recovery, password="pw")
        assert opened["lac"] == count - 1, name
        read = call("read", handle=opened["handle"], first=0, last=count - 1, size=SIZE, step=500)
        assert (read["entries"], read["wrong"]) == (count, 0), (name, read)


def fill(content: Content, java: JavaBookie) -> None:
    """Write closed, open, fenced and deleted ledgers, one of them with an explicit LAC.

    Most of them are flushed; the last are in the journal only.
    """
    for name, count in (("closed", 300), ("open", 150), ("fenced", 100), ("deleted", 50), ("lac", 100)):
        content.write(name, count)
    content.client.call("close", handle=content.handles["closed"])
    wait_for(lambda: _fence(content), "the fencing read fails")
    ask: dict[str, Any] = {"bookie": content.bookie, "ledger": content.ledgers["lac"], "lac": 42, "password": "pw"}
    assert content.client.driver.call("raw_write_lac", **ask)["code"] == 0
    content.client.call("delete", ledger=content.ledgers["deleted"])
    # add entries to each store afterwards, because upstream's flush leaves fences out if there is nothing else to
    # flush
    content.write("rest", FILL)
    content.write("more", 100)
    wait_until_marked(java)
    content.add("open", 10)
    wait_for(lambda: content.raw_read("deleted", 0) == NO_SUCH_LEDGER, "the deleted ledger is still there")
    content.add("rest", 5)


def _fence(content: Content) -> bool:
    """Fence the ledger and return whether that succeeded. If it did not, add an entry to another ledger, because the
    end
    of a file of upstream's direct-I/O logger can stay unreadable until one more flush.
    """
    if content.raw_read("fenced", 0, FLAG_FENCE) == 0:
        return True
    content.add("open", 1)
    return False


def wait_until_marked(java: JavaBookie) -> None:
    """Wait until a checkpoint covers everything journaled so far. Interleaved and Sorted storage do so per full log."""
    if "storage.ldb" not in java.settings["ledgerStorageClass"]:
        return
    root = directories(java, "ledgerDirectories")[0] / "current"
    before = _marks(root)
    wait_for(lambda: all(now > was for now, was in zip(_marks(root), before, strict=True)), "no checkpoint")


def _marks(root: Path) -> list[tuple[int, int]]:
    marks = []
    for path in sorted(root.glob("lastMark*")):
        data = path.read_bytes()
        marks.append(struct.unpack(">qq", data) if len(data) == 16 else (1 << 62, 0))
    return marks


def explicit_lac(port: int, ledger: int) -> int:
    """Return the explicit LAC that a bookie answers in V3, or -1 without one."""
    with Wire(port) as wire:
        answer = wire.ask(pb.READ_LAC, readLacRequest=pb.ReadLacRequest(ledgerId=ledger))
    body = answer.readLacResponse.lacBody
    return int.from_bytes(body[8:16], signed=True) if body else -1


Ended = Callable[..., tuple[JavaBookie, Content]]
"""`ended(kind, "stop" or "kill", **settings)`: a Java bookie that was filled and ended."""
