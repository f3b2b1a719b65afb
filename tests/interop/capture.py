"""Write down what Apache BookKeeper sends and stores, into tests/golden/java: `python -m tests.interop.capture`

Starts a real ZooKeeper and a real bookie, drives the bookie with the Java client through a recording proxy (and by hand
where the Java client cannot be made to send a request), and copies the files that the bookie leaves. Run from the
repository's root; `make java` comes first.
"""

import json
import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from tests.fixtures.java_peer import ROOT, VERSION, JavaPeer, find_peer
from tests.fixtures.java_process import SMALL, JavaBookie, init_cluster
from tests.fixtures.ports import free_port
from tests.fixtures.zookeeper import ZooKeeperServer
from tests.interop.driver import FLAG_FENCE, FLAG_HIGH_PRIORITY, FLAG_RECOVERY_ADD, Driver
from tests.interop.proxy import Recorder, read_frame

GOLDEN = ROOT / "tests" / "golden" / "java"
LEDGER = 7
# Requests that the Java client never sends: another version, a header shorter than an entry's, AUTH without a plugin.
BY_HAND = {
    "read_version_3_answers_ebadversion": "000000140302000000000000000000070000000000000000",
    "read_version_1": "000000140102000000000000000000070000000000000000",
    "read_version_0": "000000140000000200000000000000070000000000000000",
    "add_of_16_bytes_answers_ebadreq": "0000002802010000" + "00" * 20 + "00000000000000090000000000000000",
    "auth": "0000000e020300000a047361736c12020102",
}


class Capture:
    """One run with its processes, the recorder, and the names of what was recorded."""

    def __init__(self, peer: JavaPeer, work: Path) -> None:
        self.peer = peer
        self.work = work
        self.zookeeper = ZooKeeperServer(peer, work / "zookeeper")
        self.uri = f"zk+hierarchical://{self.zookeeper.address}/ledgers"
        settings = {**SMALL, "logSizeLimit": "2048", "flushInterval": "60000", "journalPreAllocSizeMB": "1"}
        self.bookie = JavaBookie(peer, work / "bookie", free_port(), self.uri, settings)
        self.driver = Driver(peer, work / "driver.log")
        self.recorder = Recorder(self.bookie.port)
        self.names: list[str] = []

    def raw(self, name: str, op: str, **arguments: Any) -> None:
        """Send one request of the Java client through the proxy, and record it under `name`."""
        defaults: dict[str, Any] = {"bookie": f"127.0.0.1:{self.recorder.port}", "ledger": LEDGER, "password": "pw"}
        self.driver.call(op, **{**defaults, **arguments})
        self.names.append(name)
        assert len(self.recorder.exchanges) == len(self.names), f"{name}: not one exchange"

    def by_hand(self) -> None:
        """Send the requests of BY_HAND on one connection."""
        with socket.create_connection(("127.0.0.1", self.recorder.port)) as connection:
            for name, request in BY_HAND.items():
                connection.sendall(bytes.fromhex(request))
                read_frame(connection)
                self.names.append(name)

    def requests(self) -> None:
        """Send every V2 operation, and provoke every answer that a healthy bookie can be made to give."""
        for entry in range(3):
            self.raw(f"add_{entry}", "raw_add", entry=entry, size=5 + entry, length=5 * (entry + 1))
        self.raw("add_crc32", "raw_add", entry=3, size=9, digest="CRC32")
        self.raw("add_hmac", "raw_add", entry=4, size=9, digest="HMAC")
        self.raw("add_dummy", "raw_add", entry=5, size=9, digest="DUMMY")
        self.raw("add_empty", "raw_add", entry=8, size=0)
        self.raw("add_large", "raw_add", entry=9, size=700)
        self.raw("add_other_key", "raw_add", entry=10, password="other")
        self.raw("read", "raw_read", entry=1)
        self.raw("read_last", "raw_read", entry=-1)
        self.raw("read_high_priority", "raw_read", entry=2, flags=FLAG_HIGH_PRIORITY)
        self.raw("read_no_entry", "raw_read", entry=7)
        self.raw("read_no_ledger", "raw_read", entry=0, ledger=12345)
        self.raw("batch", "raw_batch", entry=0, count=3, max_size=1 << 20)
        self.raw("batch_to_gap", "raw_batch", entry=2, count=0, max_size=1 << 20)
        self.raw("batch_by_size", "raw_batch", entry=0, count=10, max_size=130)
        self.raw("batch_one", "raw_batch", entry=9, count=10, max_size=0)
        self.raw("batch_no_entry", "raw_batch", entry=6, count=10)
        self.raw("batch_no_ledger", "raw_batch", entry=0, count=10, ledger=12345)
        self.raw("fence_other_key", "raw_read", entry=-1, flags=FLAG_FENCE, password="other")
        self.raw("fence", "raw_read", entry=-1, flags=FLAG_FENCE)
        self.raw("add_fenced", "raw_add", entry=10, size=5)
        self.raw("add_recovery", "raw_add", entry=10, size=5, flags=FLAG_RECOVERY_ADD | FLAG_HIGH_PRIORITY)
        self.raw("read_recovery", "raw_read", entry=10, flags=FLAG_FENCE | FLAG_HIGH_PRIORITY)
        self.raw("batch_fence_empty", "raw_batch", entry=0, count=10, flags=FLAG_FENCE, ledger=8)
        self.driver.call("raw_disconnect")
        self.by_hand()

    def ledgers(self) -> dict[str, int]:
        """Make ledgers whose metadata is worth keeping, named by what is special about them."""
        self.driver.call("connect", uri=self.uri)
        made = {}
        custom = {"application": "bookie", "note": "ä"}
        handle = self.driver.call("create", password="secret", custom=custom)
        made["open"] = handle["ledger"]
        handle = self.driver.call("create", password="", digest="MAC")
        self.driver.call("add", handle=handle["handle"], n=3, size=1000, window=1)
        self.driver.call("close", handle=handle["handle"])
        made["closed"] = handle["ledger"]
        handle = self.driver.call("create", digest="CRC32")
        self.driver.call("close", handle=handle["handle"])
        made["closed_empty"] = handle["ledger"]
        for version in (1, 2):
            self.driver.call("connect", uri=self.uri, settings={"ledgerMetadataVersion": str(version)})
            made[f"version_{version}"] = self.driver.call("create", password="secret", digest="DUMMY")["ledger"]
        return made

    def znodes(self, ledgers: dict[str, int]) -> None:
        """Copy the contents of ZooKeeper byte for byte."""
        zookeeper = KazooClient(self.zookeeper.address)
        zookeeper.start()
        paths = {
            "LAYOUT": "/ledgers/LAYOUT",
            "INSTANCEID": "/ledgers/INSTANCEID",
            "cookie": f"/ledgers/cookies/{self.bookie.id}",
            "service_info": f"/ledgers/available/{self.bookie.id}",
        }
        for name, ledger in ledgers.items():
            digits = f"{ledger:010d}"
            paths[f"ledger_{name}"] = f"/ledgers/{digits[:2]}/{digits[2:6]}/L{digits[6:]}"
        for name, path in paths.items():
            (GOLDEN / f"znode_{name}.bin").write_bytes(zookeeper.get(path)[0])
        zookeeper.stop()
        zookeeper.close()

    def files(self) -> None:
        """Copy the journal (cut after its last record's padding), the entry logs, and the small files beside them."""
        (journal,) = self.bookie.journal.glob("current/*.txn")
        used = journal.read_bytes().rstrip(b"\0")
        (GOLDEN / journal.name).write_bytes(used + bytes(-len(used) % 4096))
        for log in self.bookie.ledgers.glob("current/*.log"):
            if log.stat().st_size:
                shutil.copy(log, GOLDEN / log.name)
        for name in ("VERSION", "lastMark", "lastId"):
            shutil.copy(self.bookie.ledgers / "current" / name, GOLDEN / f"{name}.bin")

    def run(self) -> None:
        """Do everything in order. The bookie is stopped cleanly before its files are copied."""
        try:
            self.zookeeper.start()
            init_cluster(self.peer, self.work / "init", self.uri)
            self.bookie.start()
            self.driver.start()
            self.recorder.start()
            self.requests()
            self.driver.call("raw_write_lac", bookie=self.bookie.id, ledger=LEDGER, lac=9, password="pw")
            ledgers = self.ledgers()
            self.znodes(ledgers)
            self.driver.stop()
            self.recorder.stop()
            self.bookie.stop()
            self.files()
            self.facts(ledgers)
        finally:
            self.driver.stop()
            self.bookie.kill()
            self.zookeeper.kill()

    def facts(self, ledgers: dict[str, int]) -> None:
        """Write frames.json and facts.json: what was said, and what the files are about."""
        named = zip(self.names, self.recorder.exchanges, strict=True)
        frames = {name: {"request": request.hex(), "answer": answer.hex()} for name, (request, answer) in named}
        (GOLDEN / "frames.json").write_text(json.dumps(frames, indent=1) + "\n")
        facts = {
            "version": VERSION,
            "bookie": self.bookie.id,
            "journal_directory": str(self.bookie.journal),
            "ledger_directory": str(self.bookie.ledgers),
            "ledgers": ledgers,
        }
        (GOLDEN / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")


def main() -> None:
    """Replace the bytes of tests/golden/java; the text and tests beside them stay."""
    for old in GOLDEN.iterdir():
        if old.suffix not in {".md", ".py"} and old.is_file():
            old.unlink()
    with tempfile.TemporaryDirectory(prefix="capture-") as work:
        Capture(find_peer(), Path(work)).run()


if __name__ == "__main__":
    main()
