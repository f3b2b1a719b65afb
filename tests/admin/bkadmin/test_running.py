"""The commands of bkadmin that query a running bookie, and their errors when they cannot."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from bookie.client.channel.v3 import ChannelV3
from bookie.client.entries.digest import Digest, DigestType
from bookie.pb import stored_service_pb2 as pb
from bookie.pb.stored_service_pb2_grpc import StoredServicer, add_StoredServicer_to_server
from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority
from tests.fixtures.ports import free_port

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

NOBODYS = 1 << 40
END_S = 60.0
PATIENCE_S = 15.0
READER = "reader-reader-reader"
ROOT = Path(__file__).resolve().parents[3]
ASKING = (
    "status", "metrics", "config", "readonly", "flush", "gc", "scrub", "quarantine", "entrylogs", "sanity", "loglevel",
)  # fmt: skip


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BookieProcess]:
    """One bookie for all tests but the one that kills it; each test restores its state."""
    directory = tmp_path_factory.mktemp("standing")
    settings = {"advertisedAddress": "127.0.0.1", "gcWaitTime": "3600000"}
    one = BookieProcess(directory, f"lmdb://{directory}/metadata", settings).start()
    yield one
    assert one.stop() == 0


@pytest.fixture
def bookie(standing: BookieProcess, monkeypatch: pytest.MonkeyPatch) -> BookieProcess:
    """The bookie, whose admin port bkadmin finds through the environment."""
    monkeypatch.setenv("BOOKIE_ADMIN", standing.admin)
    monkeypatch.setenv("BOOKIE_METADATA_URI", f"grpc://{standing.admin}")
    return standing


def test_what_a_bookie_tells(bookie: BookieProcess, bkadmin: BkAdmin) -> None:
    """Status, configuration, metrics, log levels and entry logs, for people and for programs."""
    status = bkadmin("status", "-o", "json").json
    assert (status["bookie"], status["state"]) == (bookie.id, "writable")
    assert status["disks"][0]["level"] == "ok"
    assert "state: writable" in bkadmin("status").out
    keys = {row["key"]: row["value"] for row in bkadmin("config", "bookie*", "gcWaitTime", "-o", "json").json["keys"]}
    assert (keys["bookiePort"], keys["gcWaitTime"]) == (str(bookie.port), "3600000")
    assert set(keys) <= {"gcWaitTime", *(key for key in keys if key.startswith("bookie"))}
    rows = bkadmin("metrics", "bookie_journal_*", "-o", "json").json["metrics"]
    assert rows
    assert all(row["name"].startswith("bookie_journal_") for row in rows)
    assert "# TYPE bookie_journal_" in bkadmin("metrics", "bookie_journal_*", "-o", "prometheus").out
    levels = bkadmin("loglevel", "error", "bookie.server.mode", "-o", "json").json["levels"]
    assert {"logger": "bookie.server.mode", "level": "error"} in levels
    logs = bkadmin("entrylogs", "-o", "json").json
    assert logs["bytes"] == sum(row["bytes"] for row in logs["logs"])


def test_orders(bookie: BookieProcess, bkadmin: BkAdmin) -> None:
    """Read-only mode and back, a flush, a sanity test, a forced cycle with --wait, and write close."""
    assert bkadmin("readonly", "on", "-o", "json").json["reasons"] == ["operator"]
    assert bkadmin("sanity").code == 3
    assert not bkadmin("readonly", "off", "-o", "json").json["read_only"]
    assert bkadmin("sanity", "-o", "json").json["passed"]
    before = bkadmin("lastmark", "--admin", bookie.admin, "-o", "json").json["marks"]
    after = bkadmin("flush", "-o", "json").json["marks"]
    assert (after[0]["journal_id"], after[0]["position"]) > (before[0]["journal_id"], before[0]["position"])
    log = bkadmin("entrylogs", "-o", "json").json["logs"][0]["log"]
    assert len(bkadmin("entrylogs", log, "--all", "-o", "json").json["ledgers"]) == 1
    assert bkadmin("gc", "suspend", "--major", "-o", "json").json["major_suspended"]
    assert not bkadmin("gc", "resume", "-o", "json").json["major_suspended"]
    assert bkadmin("gc", "force", "--mass-deletion", "--dry-run").out.startswith(
        "would delete all ledgers of this bookie"
    )
    forced = bkadmin("gc", "force", "--wait", "-o", "json")
    assert forced.code == 0
    assert forced.json["counters"]["gc_cycles_total"] >= 1
    assert bkadmin("scrub", "pause", "-o", "json").json["paused"]
    assert not bkadmin("scrub", "resume", "-o", "json").json["paused"]
    assert bkadmin("scrub", "pace", "--rate", 1 << 20, "-o", "json").json["rate_per_second"] == 1 << 20
    scrubbed = bkadmin("scrub", "start", "--wait", "-o", "json").json
    assert (scrubbed["pass"], scrubbed["found"], scrubbed["counters"]["scrub_passes"]) == (1, 0, 1)
    assert "no findings" in bkadmin("scrub", "--findings").out
    assert bkadmin("simpletest", "-e", 1, "-w", 1, "-a", 1, "-n", 3, "--keep").code == 0
    (ledger,) = (row["ledger"] for row in bkadmin("listledgers", "-o", "json").json["ledgers"])
    assert "announced" in bkadmin("write-close", ledger).out
    closed = bkadmin("write-close", ledger, 4711, "--admin", bookie.admin, "-o", "json")
    assert [row["state"].partition(":")[0] for row in closed.json["bookies"]] == ["announced", "failed"]
    assert closed.code == 3


def test_one_bookie_of_a_ledger(bookie: BookieProcess, bkadmin: BkAdmin) -> None:
    """Its entries and their locations, also of a ledger without metadata, whose digests are not verified."""
    assert bkadmin("simpletest", "-e", 1, "-w", 1, "-a", 1, "-n", 3, "--keep").code == 0
    ledger = max(row["ledger"] for row in bkadmin("listledgers", "-o", "json").json["ledgers"])
    bkadmin("flush")
    here = ("--admin", bookie.admin, "-o", "json")
    found = bkadmin("ledger", ledger, *here).json
    assert ([row["entry"] for row in found["entries"]], found["ranges"], found["partial"]) == (
        [0, 1, 2],
        ["0-2"],
        False,
    )
    assert "entries" not in bkadmin("ledger", ledger, "--meta", *here).json
    read = bkadmin("readledger", ledger, "-fe", 1, "-m", *here)
    whole = bkadmin("readledger", ledger, "-fe", 1, "-m", "-o", "json").json["entries"]
    assert [{key: row[key] for key in ("entry", "bytes", "data")} for row in read.json["entries"]] == whole
    assert (read.code, read.json["problems"]) == (0, 0)
    with ChannelV3.connect(*bookie.address) as channel:
        channel.add(NOBODYS, 0, b"of nobody", digest=Digest.of(DigestType.CRC32C, b""), lac=-1, length=9)
    wrong = bkadmin("readledger", NOBODYS, *here)
    assert (wrong.code, "was not verified" in wrong.json["entries"][0]["problem"]) == (3, True)
    for words, says in (
        (("ledger", 4711, *here), "ledger 4711 is neither on this bookie"),
        (("readledger", ledger, "-r", *here), "cannot be combined with --admin"),
    ):
        done = bkadmin(*words)
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert says in done.err
    assert bkadmin("deleteledger", ledger, "--yes").code == 0


@pytest.mark.parametrize("command", ASKING)
def test_nobody_listens(bkadmin: BkAdmin, command: str) -> None:
    """A wrong address: exit code 1 and one line with the remedy, from every command."""
    done = bkadmin(command, "--admin", f"127.0.0.1:{free_port()}")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert "connection refused; check --admin" in done.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("status", "--admin", "nowhere"), "not of the form HOST:PORT"),
        (("status", "--admin", "ftp://h:1"), "write HOST:PORT, or grpcs"),
        (("status", "--admin", "no.such.host.example:1"), "the host name cannot be resolved"),
        (("status", "--token-file", "/does/not/exist"), "Usage|does/not/exist"),
        (("status", "--tls-cert", "/x"), "must be given together"),
        (("status", "--tls-ca", "/does/not/exist"), "does/not/exist"),
        (("entrylogs", "xyz"), "is not an entry log id"),
        (("entrylogs", "0", "--directory", str(1 << 31)), "range"),
        (("readledger", "0", "-fe", str(1 << 63), "--admin", "127.0.0.1:1"), "range"),
        (("write-close", str(1 << 63), "--admin", "127.0.0.1:1"), "range"),
        (("gc", "--dry-run"), "requires --mass-deletion"),
        (("metrics", "--watch", "1", "-o", "prometheus"), "cannot be combined with -o prometheus"),
    ],
)
def test_what_cannot_be_asked(bkadmin: BkAdmin, words: tuple[str, ...], says: str) -> None:
    """The command prints one line that says why, and no traceback."""
    done = bkadmin(*words)
    assert done.code in (1, 2)
    assert any(part in done.err for part in says.split("|"))
    assert (done.out, done.err.count("\n")) == ("", 1)


def test_unknown_things_at_a_bookie(bookie: BookieProcess, bkadmin: BkAdmin) -> None:
    """An entry log, a logger and a ledger that do not exist."""
    for words, says in (
        (("entrylogs", "77"), "entry log 77: there is no such log"),
        (("entrylogs", "77", "--directory", 3), "there is no ledger directory 3"),
        (("loglevel", "debug", "bookie.server.mod"), "did you mean bookie.server.mode?"),
        (("write-close", "4711"), "4711"),
    ):
        done = bkadmin(*words)
        assert (done.code, done.err.count("\n")) == (1, 1)
        assert says in done.err


@pytest.mark.thorough
def test_roles_and_tls(
    tmp_path: Path,
    bookies: Callable[..., list[BookieProcess]],
    bookie: BookieProcess,
    bkadmin: BkAdmin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A missing token, a missing role, clear text at a TLS port, another CA: each error says its remedy."""
    ca, stranger = Authority(tmp_path / "ca"), Authority(tmp_path / "other", "other")
    own = ca.issue("bookie", hosts=["127.0.0.1"])
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read:{READER}\n")
    tokens.chmod(0o600)
    (guarded,) = bookies(
        1,
        adminTokensFile=str(tokens),
        adminTlsCertificatePath=str(own.certificate),
        adminTlsKeyPath=str(own.key),
    )
    right = ("--admin", guarded.admin, "--tls-ca", ca.certificate)
    for words, code, says in (
        ((*right, "--token-file", tokens), 0, ""),
        (("--admin", guarded.admin, "--token-file", tokens), 1, "whether its port requires TLS (--tls-ca)"),
        (("--admin", guarded.admin, "--tls-ca", stranger.certificate, "--token-file", tokens), 1, "check --tls-ca"),
    ):
        done = bkadmin("readonly", *words)
        assert (done.code, done.err.count("\n")) == (code, min(code, 1)), done.err
        assert says in done.err
    assert bkadmin("readonly", *right).code == 0  # with the bookie's own token, which we may read
    monkeypatch.delenv("BOOKIE_ADMIN")
    named = bkadmin("readonly", "--conf", guarded.conf, "--tls-ca", ca.certificate)
    assert named.code == 0
    assert (
        bkadmin("readonly", "off", "--conf", guarded.conf, "--tls-ca", ca.certificate).code == 0
    )  # not with the role of a reader
    (guarded.ledgers / "admin.token").unlink()
    reader = bkadmin("readonly", "off", "--conf", guarded.conf, "--tls-ca", ca.certificate)
    assert (reader.code, "has the role read, but this needs operate" in reader.err) == (1, True)
    unknown = bkadmin("readonly", *right)
    assert (unknown.code, unknown.err.count("\n"), "no token was sent" in unknown.err) == (1, 1, True)
    refused = bkadmin("readonly", "on", *right, "--token-file", tokens)
    assert refused.code == 1
    assert "line-1 has the role read, but this needs operate" in refused.err
    mismatch = bkadmin("readonly", "--admin", bookie.admin, "--tls-ca", ca.certificate)
    assert (mismatch.code, "that the port has TLS" in mismatch.err) == (1, True)


class Watcher:
    """A running bkadmin process, whose output is read line by line, and then to its end."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> str:
        """Return the next line."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def rest(self) -> tuple[str, str, int]:
        """Wait for the process to end, or kill it after a time; return its remaining output, errors and exit code."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        bound = threading.Timer(END_S, self.process.kill)
        bound.start()
        try:
            return self.process.stdout.read(), self.process.stderr.read(), self.process.wait()
        finally:
            bound.cancel()
            bound.join()


@contextmanager
def watching(*words: str) -> Iterator[Watcher]:
    """Start a `bkadmin` that keeps running."""
    command = [sys.executable, "-m", "bookie_admin.bkadmin.main", *words]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield Watcher(process)
        finally:
            process.kill()


def test_a_bookie_that_dies_under_a_watcher(bookies: Callable[..., list[BookieProcess]]) -> None:
    """What was received is printed, and the last line says that it is incomplete; exit code 1."""
    (bookie,) = bookies(1)
    watch = ("metrics", "bookie_journal_*", "--admin", bookie.admin, "--watch", "0.1", "-o", "json")
    with watching(*watch) as watcher:
        looks = [json.loads(watcher.line()) for _ in range(2)]
        bookie.kill()
        rest, said, code = watcher.rest()
    assert looks[1]["at_ms"] > looks[0]["at_ms"]
    assert any(row["per_s"] is not None for row in looks[1]["metrics"])
    assert all(json.loads(line) for line in rest.splitlines())
    assert (code, said.count("\n")) == (1, 1)
    assert "the output is incomplete" in said


@pytest.mark.thorough
def test_a_bookie_that_hangs_under_a_watcher(bookies: Callable[..., list[BookieProcess]]) -> None:
    """A stream without changes is silent; it ends if the bookie gives no sign of life within --timeout."""
    (bookie,) = bookies(1)
    with watching("status", "--watch", "--admin", bookie.admin, "--timeout", "1", "-o", "json") as watcher:
        assert json.loads(watcher.line())["state"] == "writable"
        bookie.freeze()
        try:
            _, said, code = watcher.rest()
        finally:
            bookie.thaw()
    assert (code, said.count("\n")) == (1, 1)
    assert "connection lost" in said


def test_a_bookie_that_stops_under_a_watcher(bookies: Callable[..., list[BookieProcess]]) -> None:
    """The last line says so, and the exit code is 1: the watcher has not been ended by its user."""
    (bookie,) = bookies(1)
    with watching("gc", "--watch", "--admin", bookie.admin, "-o", "json") as watcher:
        assert json.loads(watcher.line())
        assert bookie.stop() == 0
        _, said, code = watcher.rest()
    where = f"admin port {bookie.admin}"
    assert (code, said) == (1, f"bkadmin: {where}: the bookie has ended the stream, as it does when it stops\n")


def test_a_port_that_never_answers_a_watcher(bkadmin: BkAdmin) -> None:
    """A watcher waits for its first connection no longer than --timeout, although it waits for changes without end."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        done = bkadmin("status", "--watch", "--admin", where, "--timeout", "0.5")
    assert time.monotonic() - began < PATIENCE_S
    assert (done.code, done.err.count("\n"), "connection lost" in done.err) == (1, 1, True)


WATCHED = (("status", "--watch"), ("gc", "--watch"), ("metrics", "bookie_j*", "--watch", "0.1"))


@pytest.mark.parametrize("words", WATCHED)
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_watcher_is_ended_by_ctrl_c(bookie: BookieProcess, words: tuple[str, ...], form: str) -> None:
    """Ctrl-C is the regular end: exit code 0, and programs can parse the output."""
    with watching(*words, "--admin", bookie.admin, "-o", form) as watcher:
        text = watcher.line()
        watcher.process.send_signal(signal.SIGINT)
        more, said, code = watcher.rest()
    text += more
    assert (code, said) == (0, "")
    looks = [*map(json.loads, text.splitlines())] if form == "json" else [*yaml.safe_load_all(text)]
    assert all(isinstance(one, dict) for one in looks)


class HalfAnAnswer(StoredServicer):
    """A bookie that disconnects in the middle of a list."""

    def ListLedgersOfLog(self, _request: Any, context: Any) -> Iterator[pb.LedgersOfLog]:  # noqa: N802
        yield pb.LedgersOfLog(ledgers=[pb.LedgerInLog(ledger=7, bytes=100, active=True)])
        context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")


@pytest.mark.thorough
def test_a_list_that_is_cut_off(bkadmin: BkAdmin) -> None:
    """What was received is shown and marked as partial; the exit code is 3."""
    pool = futures.ThreadPoolExecutor(2)
    server = grpc.server(pool)
    add_StoredServicer_to_server(HalfAnAnswer(), server)  # type: ignore[no-untyped-call]  # generated
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    done = bkadmin("entrylogs", "1f", "--directory", 0, "--admin", f"127.0.0.1:{port}", "-o", "json")
    server.stop(0).wait()
    pool.shutdown()
    assert (done.code, done.json["partial"], done.json["ledgers"][0]["ledger"]) == (3, True, 7)
    assert "the output is incomplete" in done.err
