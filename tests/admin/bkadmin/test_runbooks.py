"""Each command of docs/runbooks.md is run on real bookies, in the order and with the effects that the page states.

The runbook of a lost disk is tried in more detail in test_lost_disk.
"""

import re
import shlex
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bookie.client import BookKeeper
from tests.admin.bkadmin.conftest import BkAdmin, Done
from tests.crash.flips.index_pages import stretches
from tests.fixtures.bookies import ROOT, BookieProcess, metadata_of

pytestmark = [
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
    pytest.mark.thorough,
]
PAGE = ROOT / "docs/runbooks.md"
HERE, THERE = "10.0.0.7:3181", "10.0.0.8:3181"
ASKS = {"clearlimbo", "decommissionbookie", "rebuild-db-ledger-locations-index",
        "rebuild-db-ledgers-index", "recover", "replacedisk", "updatebookieinledger", "updatecookie"}  # fmt: skip
"""Commands that ask whether one is sure; `--list`, `--query` and `--dry-run` do not."""
ENTRIES = 30
RECOVERING = {
    "autoRecoveryDaemonEnabled": "true",
    "lostBookieRecoveryDelay": "0",
    "auditorPeriodicBookieCheckInterval": "3600",
}
Bookies = Callable[..., list[BookieProcess]]


def blocks(title: str) -> list[list[list[str]]]:
    """Return the words of each `bkadmin` line in each block of a section."""
    [section] = [one for one in PAGE.read_text().split("\n## ") if one.startswith(title + "\n")]
    found = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return [
        [words for line in one.splitlines() if (words := shlex.split(line, comments=True))[0] == "bkadmin"]
        for one in found
    ]


class Runbook:
    """The commands of one block, which are taken in order: each `do` names the one that it expects."""

    def __init__(self, bkadmin: BkAdmin, title: str, block: int, names: Mapping[str, str]) -> None:
        self._bkadmin = bkadmin
        self._lines = iter(blocks(title)[block])
        self._names = names

    def do(self, command: str, *more: object) -> Done:
        """Run the next command, with more options than on the page."""
        _, *words = next(self._lines)
        assert words[0] == command
        words = [self._names.get(one, one) for one in words]
        asks = command in ASKS and not {"--list", "--query", "--dry-run"} & set(words)
        return self._bkadmin(*words, *more, *(["--yes"] if asks else []))

    def end(self) -> None:
        """Check that no command is left."""
        assert list(self._lines) == []


@pytest.fixture
def book(bkadmin: BkAdmin, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Runbook]:
    """A function that opens a runbook: its title, the block, the cluster, the bookie, and other names of the page."""

    def opened(title: str, block: int, cluster: list[BookieProcess], bookie: BookieProcess, **names: str) -> Runbook:
        monkeypatch.setenv("BOOKIE_METADATA_URI", metadata_of(cluster))
        monkeypatch.setenv("BOOKIE_CONF", str(bookie.conf))
        return Runbook(bkadmin, title, block, {HERE: bookie.id, **names})

    return opened


def written(cluster: list[BookieProcess], count: int = 3, copies: int = 2) -> list[int]:
    """Write ledgers, close them, and return their ids."""
    found = []
    with BookKeeper(metadata_of(cluster)) as bk:
        for _ in range(count):
            with bk.create_ledger(ensemble_size=copies, password=b"") as ledger:
                for number in range(ENTRIES):
                    ledger.append_async(b"entry %d" % number)
                found.append(ledger.id)
    return found


def check(cluster: list[BookieProcess], ledgers: list[int]) -> None:
    """Read all entries of the ledgers."""
    with BookKeeper(metadata_of(cluster)) as bk:
        for one in ledgers:
            with bk.open_ledger(one, password=b"") as ledger:
                assert [bytes(entry.data) for batch in ledger.batches() for entry in batch] == [
                    b"entry %d" % number for number in range(ENTRIES)
                ]


def until(bkadmin: BkAdmin, words: list[str], told: Callable[[Done], bool]) -> None:
    """Call a command until it tells something, as an operator does."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if told(bkadmin(*words)):
            return
    raise AssertionError(f"{words}: {bkadmin(*words)}")


def absent(bkadmin: BkAdmin, bookie: str) -> None:
    """Wait until a killed bookie's session with the metadata store has ended."""
    until(
        bkadmin,
        ["listbookies"],
        lambda done: re.search(rf"^{re.escape(bookie)} +absent", done.out, re.MULTILINE) is not None,
    )


def test_a_bookie_is_lost(bookies: Bookies, book: Callable[..., Runbook], bkadmin: BkAdmin) -> None:
    """Auto-recovery copies its ledgers; the cookie is deleted at the end, and nothing is left to do."""
    cluster = bookies(4, **RECOVERING)
    lost = cluster[3]
    ledgers = written(cluster, 8)
    lost.kill()
    run = book("A bookie is lost", 0, cluster, lost)
    absent(bkadmin, lost.id)
    assert f"{lost.id}  absent" in run.do("listbookies").out
    assert run.do("triggeraudit").code == 0
    assert run.do("listunderreplicated").code == 0
    assert run.do("decommissionbookie").code == 0
    health = run.do("health", "--full", 100)  # how full the disk of the machine is does not matter
    assert (health.code, lost.id in health.out) == (0, False), health.out
    run.end()
    check(cluster, ledgers)


def test_a_bookie_is_lost_without_an_auditor(bookies: Bookies, book: Callable[..., Runbook], bkadmin: BkAdmin) -> None:
    """A command copies from its own process, and the bookie is forgotten."""
    cluster = bookies(4)
    lost = cluster[3]
    ledgers = written(cluster, 8)
    lost.kill()
    run = book("A bookie is lost", 1, cluster, lost)
    absent(bkadmin, lost.id)
    assert run.do("recover").code == 0
    assert run.do("recover").code == 0
    run.end()
    assert lost.id not in bkadmin("listbookies").out
    check(cluster, ledgers)


def test_a_bookie_is_retired(bookies: Bookies, book: Callable[..., Runbook], bkadmin: BkAdmin) -> None:
    """It serves until it is stopped; then its ledgers move. Without a bookie to take them, the command says so."""
    cluster = bookies(3, **RECOVERING)
    retired = cluster[2]
    ledgers = written(cluster, 4)
    run = book("A bookie is retired", 0, cluster, retired)
    assert run.do("readonly").code == 0
    assert f"{retired.id}  read-only" in bkadmin("listbookies").out
    refused = run.do("decommissionbookie")
    assert (refused.code, "stop it first" in refused.err) == (1, True)
    assert retired.stop() == 0
    absent(bkadmin, retired.id)
    assert run.do("decommissionbookie").code == 0
    assert retired.id not in run.do("listbookies").out
    run.end()
    check(cluster, ledgers)


def test_a_bookie_moves(bookies: Bookies, book: Callable[..., Runbook], tmp_path: Path) -> None:
    """Its directories are copied, and it serves under its id."""
    cluster = bookies(2, allowEphemeralPorts="true")
    moved = cluster[1]
    ledgers = written(cluster)
    assert moved.stop() == 0
    for one in (moved.journal, moved.ledgers):
        shutil.copytree(one, tmp_path / "copy" / one.name)
        shutil.rmtree(one)
        shutil.move(tmp_path / "copy" / one.name, one)
    run = book("A bookie moves to another machine", 0, cluster, moved)
    assert moved.id in run.do("bookieid").out
    assert run.do("updatecookie").code == 0
    assert run.do("localconsistencycheck").code == 0
    moved.start()
    assert run.do("bookiesanity").code == 0
    run.end()
    check(cluster, ledgers)


def test_a_bookie_moves_under_a_new_id(bookies: Bookies, book: Callable[..., Runbook]) -> None:
    """Cookies and ledgers name the new id, and every ledger is read from it."""
    cluster = bookies(2)
    moved = cluster[1]
    ledgers = written(cluster)
    assert moved.stop() == 0
    moved.settings["bookieId"] = "renamed"
    moved.command()
    run = book("A bookie moves to another machine", 1, cluster, moved, **{THERE: "renamed"})
    assert run.do("updatecookie").code == 0
    assert run.do("updatebookieinledger").code == 0
    assert run.do("updatecookie").code == 0
    run.end()
    assert moved.start().id == "renamed"
    check(cluster, ledgers)


def test_a_disk_is_lost(bookies: Bookies, book: Callable[..., Runbook], tmp_path: Path, bkadmin: BkAdmin) -> None:
    """The empty disk is filled again, and the cluster is healthy but for the auditor that it never had."""
    first, second = bookies(2)
    both = f"{tmp_path}/l1,{tmp_path}/l2"
    [third] = bookies(1, metadataServiceUri=metadata_of([first]), ledgerDirectories=both, journalMaxBackups="0")
    cluster = [first, second, third]
    ledgers = written(cluster, copies=3)
    with BookKeeper(metadata_of(cluster)) as bk:
        left = bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=3, password=b"")
        for number in range(ENTRIES):
            left.append(b"entry %d" % number)
        third.restart()
        assert third.stop() == 0
    shutil.rmtree(tmp_path / "l1")
    (tmp_path / "l1").mkdir(0o700)
    run = book("A disk is lost", 0, cluster, third, **{"/data/l1": f"{tmp_path}/l1", "4711": str(left.id)})
    assert run.do("replacedisk").code == 0
    third.start()
    copied = run.do("restorebookie")
    assert copied.code in (0, 3), copied.err
    assert run.do("readledger").code == 0
    assert bkadmin("restorebookie", third.id).code == 0
    assert third.stop() == 0
    assert run.do("clearlimbo").code == 0
    third.start()
    assert "auditor" in run.do("health").out
    run.end()
    check(cluster, [*ledgers, left.id])


def test_an_index_is_rebuilt(bookies: Bookies, book: Callable[..., Runbook], bkadmin: BkAdmin) -> None:
    """The check finds the damage, the index is rebuilt from the entry logs, and the check finds nothing."""
    cluster = bookies(1)
    bookie = cluster[0]
    ledgers = written(cluster, copies=1)
    bookie.restart()
    assert bookie.stop() == 0
    [index] = bookie.ledgers.rglob("locations.lmdb/data.mdb")
    damaged = bytearray(index.read_bytes())
    leaf = [one for one in stretches(bytes(damaged)) if one.part == "locations leaf"][-1]
    damaged[leaf.begin : leaf.end] = b"\xff" * (leaf.end - leaf.begin)
    index.write_bytes(bytes(damaged))
    run = book("The index is damaged or lost", 0, cluster, bookie)
    assert run.do("localconsistencycheck").code == 3
    assert run.do("rebuild-db-ledger-locations-index").code == 0
    sound = run.do("localconsistencycheck")
    assert (sound.code, "not sound: 0" in sound.out) == (0, True)
    run.end()
    bookie.start()
    check(cluster, ledgers)


def test_the_records_of_ledgers_are_rebuilt(bookies: Bookies, book: Callable[..., Runbook], bkadmin: BkAdmin) -> None:
    """The command that keeps ledger records names the one that restores them, too."""
    cluster = bookies(2)
    bookie = cluster[1]
    ledgers = written(cluster)
    bookie.restart()
    assert bookie.stop() == 0
    [index] = bookie.ledgers.rglob("locations.lmdb/data.mdb")
    size = index.stat().st_size
    index.write_bytes(index.read_bytes()[:8192] + b"\xff" * (size - 8192))
    run = book("The index is damaged or lost", 1, cluster, bookie)
    refused = bkadmin("rebuild-db-ledger-locations-index", "--yes")
    assert (refused.code, "bkadmin rebuild-db-ledgers-index" in refused.err) == (1, True)
    assert run.do("rebuild-db-ledgers-index").code == 0
    sound = run.do("localconsistencycheck")
    assert (sound.code, "not sound: 0" in sound.out) == (0, True)
    run.end()
    bookie.start()
    check(cluster, ledgers)


def test_a_journal_is_damaged(bookies: Bookies, book: Callable[..., Runbook]) -> None:
    """The start is refused, one start leaves the damage out, and the entries come from the other replica."""
    cluster = bookies(2)
    bookie = cluster[1]
    ledgers = written(cluster)
    bookie.kill()
    journal = max(bookie.journal.rglob("*.txn"), key=lambda one: one.stat().st_size)
    data = bytearray(journal.read_bytes())
    at = data.find(b"entry 3")
    assert at > 0
    data[at : at + 64] = b"\xff" * 64
    journal.write_bytes(bytes(data))
    size = bookie.log_size()
    assert bookie.run() == 1
    assert journal.name in bookie.log_since(size)
    run = book("A journal is damaged", 0, cluster, bookie, **{"19a3f2c41d0": journal.stem})
    assert run.do("readjournal").code in (0, 1, 3)
    bookie.environment["BK_skipReplayJournalInvalidRecord"] = "true"
    bookie.start()
    assert run.do("restorebookie").code == 0
    assert run.do("scrub").code == 0
    run.end()
    check([bookie, *cluster[:1]][::-1], ledgers)
    bookie.environment.clear()
    bookie.restart()


def test_a_disk_is_full(bookies: Bookies, book: Callable[..., Runbook]) -> None:
    """The commands name the full directory and what takes the space; with space, the bookie is writable by itself."""
    cluster = bookies(2)
    bookie = cluster[1]
    ledgers = written(cluster)
    bookie.settings |= {"diskUsageThreshold": "0.01", "diskUsageWarnThreshold": "0.01"}
    bookie.restart()
    run = book("A disk is full", 0, cluster, bookie)
    status = run.do("status")
    assert (status.code, str(bookie.ledgers) in status.out, "full" in status.out) == (0, True, True), status.out
    files = run.do("listfilesondisc")
    assert (files.code, ".log" in files.out) == (0, True)
    assert run.do("gc").code == 0
    assert run.do("entrylogs").code == 0
    assert "read only: yes" in run.do("readonly").out
    run.end()
    check(cluster, ledgers)


def test_a_cookie_is_wrong(bookies: Bookies, book: Callable[..., Runbook], bkadmin: BkAdmin, tmp_path: Path) -> None:
    """The differences are listed; a cookie that the metadata store lost is generated, compared and created."""
    cluster = bookies(2)
    bookie = cluster[1]
    ledgers = written(cluster)
    assert bookie.stop() == 0
    run = book("The cookie is wrong", 0, cluster, bookie)
    assert run.do("updatecookie").code == 0
    whole = run.do("cookie_get")
    assert (whole.code, bookie.id in whole.out) == (0, True)
    run.end()
    assert bkadmin("cookie_delete", bookie.id, "--yes").code == 0
    assert bkadmin("updatecookie", "--list").code == 3
    assert bookie.run() == 1
    made = tmp_path / "cookie"
    assert bkadmin("cookie_generate", bookie.id, "-f", made).code == 0
    assert bkadmin("cookie_create", bookie.id, "--cookie-file", made).code == 0
    assert bkadmin("updatecookie", "--list").code == 0
    bookie.start()
    check(cluster, ledgers)


def test_every_runbook_is_run() -> None:
    """No section of the page is without a test."""
    tested = re.findall(r'book\("(.+?)", (\d)', Path(__file__).read_text())
    titles = [one.splitlines()[0] for one in PAGE.read_text().split("\n## ")[1:]]
    assert {(title, number) for title in titles for number in range(len(blocks(title)))} == {
        (title, int(number)) for title, number in tested
    }
