"""Bad input at start gives exit code 1 and one line with the cause and the remedy, and changes nothing on disk."""

import hashlib
import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.bookies import BookieProcess
from tests.fixtures.ports import free_port

Prepare = Callable[[BookieProcess], Any]
OF_A_RUN = {"bk.conf", "bookie.log", "lock.mdb", "owner.lock"}
"""Not data: the test's own files, and locks, which name the process that holds them."""


def snapshot(bookie: BookieProcess) -> dict[str, str]:
    """Return every path below the bookie's directory with a digest of its contents."""
    found = {}
    for path in sorted(bookie.directory.rglob("*")):
        if path.name not in OF_A_RUN:
            content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "directory"
            found[str(path.relative_to(bookie.directory))] = content
    return found


def refused(bookie: BookieProcess, code: int = 1) -> str:
    """Run the bookie until it is refused, check code and disk, and return the line that says why."""
    before = snapshot(bookie)
    logged = len(bookie.log_text())
    assert bookie.run() == code, bookie.log_text()
    log = bookie.log_text()[logged:]
    assert "Traceback" not in log
    lines = [line for line in log.splitlines() if "level=critical" in line or line.startswith("bookie-server: ")]
    assert len(lines) == 1, log
    assert snapshot(bookie) == before
    return lines[0]


def take(port: str) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", int(port)))
    listener.listen()
    return listener


def file_in_the_way(bookie: BookieProcess) -> None:
    bookie.ledgers.touch()


def file_above(bookie: BookieProcess) -> None:
    (bookie.directory / "file").touch()
    bookie.settings["journalDirectories"] = str(bookie.directory / "file/journal")


def leftovers(bookie: BookieProcess) -> None:
    (bookie.ledgers / "current").mkdir(parents=True)
    (bookie.ledgers / "current/0.log").touch()


def set_to(**settings: str) -> Prepare:
    return lambda bookie: bookie.settings.update(settings)


FRESH: dict[str, tuple[Prepare, str]] = {
    "value": (set_to(bookiePort="x"), "bookiePort=x .*line .*set it to a whole number"),
    "no directory": (set_to(journalDirectories=""), "journalDirectories=.*must be set"),
    "port taken": (lambda bookie: take(bookie.settings["bookiePort"]), "bookiePort=.*another process"),
    "admin port taken": (lambda bookie: take(bookie.settings["adminPort"]), "adminPort=.*another process"),
    "memory": (set_to(memoryLimitMb="20"), "memory budgets add up to .*memoryLimitMb"),
    "not ours to write": (set_to(journalDirectories="/sys/bookie"), "/sys/bookie: .*cannot be created"),
    "leftovers without a cookie": (leftovers, "0.log exists, but neither"),
    "loopback": (set_to(allowLoopback="false"), "allowLoopback=true"),
    "interface": (set_to(listeningInterface="nope0"), "listeningInterface 'nope0'"),
    "bookie id": (set_to(bookieId="a/b"), "bookie id 'a/b'"),
    "provider": (set_to(bookieAuthProviderFactoryClass="sasel"), "most similar name is sasl"),
    "no users": (set_to(bookieAuthProviderFactoryClass="sasl"), "saslJaasConfigFile=: .*set it to the JAAS file"),
    "store scheme": (set_to(metadataServiceUri="redis://x/y"), "scheme 'redis' is unknown"),
}


def same_port(key: str, **others: str) -> Prepare:
    return lambda bookie: bookie.settings.update({key: bookie.settings["bookiePort"], **others})


def open_tokens(bookie: BookieProcess) -> None:
    tokens = bookie.directory / "tokens"
    tokens.write_text("admin:one:a-token-of-enough-bytes\n")
    tokens.chmod(0o644)
    bookie.settings["adminTokensFile"] = str(tokens)


BEFORE_DISKS: dict[str, tuple[Prepare, str]] = {
    "two equal ports": (same_port("adminPort"), "adminPort=.*bookiePort has the same port"),
    "the port of HTTP": (same_port("httpServerPort", httpServerEnabled="true"), "httpServerPort=.*the same port"),
    "no tokens": (set_to(adminTokensFile="/nowhere/tokens"), "/nowhere/tokens"),
    "tokens for everybody": (open_tokens, "adminTokensFile="),
    "a setting of auto-recovery": (
        set_to(autoRecoveryDaemonEnabled="true", ensemblePlacementPolicy="nothing"),
        "ensemblePlacementPolicy",
    ),
    "file in the way": (file_in_the_way, "ledgers: cannot be opened as a directory"),
    "file above": (file_above, "file/journal: cannot be created"),
    "no certificate": (set_to(adminTlsCertificatePath="/nowhere/a.pem", adminTlsKeyPath="/nowhere/a.key"), "nowhere"),
}


@pytest.mark.parametrize(("prepare", "says"), BEFORE_DISKS.values(), ids=BEFORE_DISKS.keys())
def test_what_needs_no_disk_is_checked_before_one_is_touched(
    new_bookies: Callable[..., list[BookieProcess]], prepare: Prepare, says: str
) -> None:
    """Nothing is created by the refused start, which opened the storage before; `--check` finds the same."""
    (bookie,) = new_bookies()
    prepare(bookie)
    line = refused(bookie)
    assert re.search(says, line), line
    assert not bookie.journal.exists()
    assert "storage open" not in bookie.log_text()
    checked = subprocess.run(bookie.command("--check"), capture_output=True, text=True, check=False)
    assert checked.returncode == 1
    assert re.search(says, checked.stderr.splitlines()[-1]), checked.stderr


@pytest.mark.thorough
@pytest.mark.parametrize(("prepare", "says"), FRESH.values(), ids=FRESH.keys())
def test_a_new_bookie_is_refused(new_bookies: Callable[..., list[BookieProcess]], prepare: Prepare, says: str) -> None:
    """Nothing is created: no directory, no store, no cookie."""
    (bookie,) = new_bookies()
    held = prepare(bookie)
    line = refused(bookie)
    assert re.search(says, line), line
    if isinstance(held, socket.socket):
        held.close()


AWAY = {
    "ZooKeeper": ("zk+hierarchical://127.0.0.1:{}/ledgers", "ZooKeeper .* did not answer within 0.3 s: check metadata"),
    "another bookie": ("grpc://127.0.0.1:{}", "metadata store 127.0.0.1"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("limit_ms", [0, 1])
@pytest.mark.parametrize(("uri", "says"), AWAY.values(), ids=AWAY.keys())
def test_a_metadata_store_that_stays_away(
    new_bookies: Callable[..., list[BookieProcess]], uri: str, says: str, limit_ms: int
) -> None:
    """The exit code is one after which a supervisor starts the bookie again, and nothing is changed."""
    (bookie,) = new_bookies(
        metadataServiceUri=uri.format(free_port()), zkTimeout="300", startupMetadataTimeoutMs=str(limit_ms)
    )
    line = refused(bookie, code=3)
    assert re.search(says, line), line
    assert ("(startupMetadataTimeoutMs)" in line) is (limit_ms > 0)


def current(directory: Path) -> Path:
    return directory / "current"


def lose_ledgers(bookie: BookieProcess) -> None:
    bookie.ledgers.rename(bookie.directory / "elsewhere")
    bookie.ledgers.mkdir()


def lose_store(bookie: BookieProcess) -> None:
    (bookie.directory / "metadata").rename(bookie.directory / "elsewhere")


def lose_marked_journal(bookie: BookieProcess) -> None:
    marked = int.from_bytes((current(bookie.ledgers) / "lastMark").read_bytes()[:8], "big")
    (current(bookie.journal) / f"{marked:x}.txn").unlink()


def newest_journal(bookie: BookieProcess) -> Path:
    return max(current(bookie.journal).glob("*.txn"), key=lambda path: int(path.stem, 16))


def newer_journal(bookie: BookieProcess) -> None:
    path = newest_journal(bookie)
    path.write_bytes(b"BKLG\x00\x00\x00\x09" + path.read_bytes()[8:])


def newer_cookie(bookie: BookieProcess) -> None:
    for directory in (bookie.journal, bookie.ledgers):
        path = current(directory) / "VERSION"
        path.write_bytes(b"6\n" + path.read_bytes().partition(b"\n")[2])


def lose_index(bookie: BookieProcess) -> None:
    (current(bookie.ledgers) / "locations.lmdb").rename(bookie.directory / "elsewhere")
    (current(bookie.ledgers) / "0.log").write_bytes(b"BKLO")


def garbage_last_id(bookie: BookieProcess) -> None:
    (current(bookie.ledgers) / "lastId").write_text("what?\n")


USED: dict[str, tuple[Prepare, str]] = {
    "another id": (set_to(bookieId="bk-2"), "bookieHost"),
    "another ledger directory": (
        lambda bookie: bookie.settings.update(ledgerDirectories=f"{bookie.ledgers},{bookie.directory}/more"),
        "ledgerDirs.*restore the previous value of ledgerDirectories",
    ),
    "a lost disk": (lose_ledgers, "ledgers/current/VERSION is missing: mount the right disk"),
    "a lost store": (lose_store, "metadataServiceUri names a cluster other than"),
    "the marked journal file is gone": (lose_marked_journal, "which is missing from .*restore that"),
    "a journal of a newer version": (newer_journal, "txn cannot be replayed .*version 9"),
    "a cookie of a newer layout": (newer_cookie, "layout 6.*upgrade"),
    "a lost index": (lose_index, "locations.lmdb is missing, but .*entry logs .*repair this bookie from its peers"),
    "garbage in lastId": (garbage_last_id, "lastId is not a hexadecimal"),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("prepare", "says"), USED.values(), ids=USED.keys())
def test_a_used_bookie_is_refused(new_bookies: Callable[..., list[BookieProcess]], prepare: Prepare, says: str) -> None:
    """Everything that a bookie stored is unchanged, byte for byte, and no new directory is left (B16)."""
    (bookie,) = new_bookies()
    bookie.start()
    assert bookie.stop() == 0
    prepare(bookie)
    line = refused(bookie)
    assert re.search(says, line), line


def test_a_second_process_on_the_same_directories_is_refused(new_bookies: Callable[..., list[BookieProcess]]) -> None:
    """The running one continues to serve; after its death the second may start."""
    first, second = new_bookies(2, bookieId="shared")
    second.settings |= {key: first.settings[key] for key in ("journalDirectories", "ledgerDirectories")}
    first.start()
    assert "another bookie process uses this directory" in refused(second)
    assert first.stop() == 0


def test_a_second_process_under_the_same_id_is_refused(new_bookies: Callable[..., list[BookieProcess]]) -> None:
    """B16: another machine that took over the name has no data, so its directories lack the cookie."""
    first, second = new_bookies(2, bookieId="shared")
    first.start()
    assert "the metadata store's cookie of shared says journalDir" in refused(second)
