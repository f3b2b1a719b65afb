"""Taking over a Java bookie's disks: what is read of its index, what is built, what is refused, and interruptions.

The disks here are made by hand; tests/interop/test_takeover.py has real ones.
"""

import hashlib
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookie._fast.index.view import Index, Ledger
from bookie.errors import StartRefused, ToolRefused
from bookie.storage.takeover import idx, take_over
from bookie.storage.takeover.give_back import give_back
from bookie.storage.takeover.rocksdb import ledgers_of, read_pairs
from tests.reference import entry_log as log_model
from tests.reference import journal as journal_model
from tests.reference.storage import lac_packet
from tests.storage.java_disks import (
    KEY,
    entry,
    index_file,
    ledger_data,
    put_index_file,
    put_logs,
    put_rocksdb,
)
from tests.storage.opened import MIB, Opened

ROOT = Path(__file__).resolve().parents[2]
STEPS = ["orphans adopted", "noted", "begun", "scanned", "filled", "closed", "swapped", "synced", "cleaned"]
GIVING_BACK = ["written", "former kept", "named"]
FENCED = 7
LOGS = {
    0: [entry(1, 0), entry(FENCED, 0), entry(1, 1), entry(99, 0)],
    0x1A: [entry(1, 2), entry(FENCED, 1), entry(1, 1)],
}
HELD = {1: [0, 1, 2], FENCED: [0, 1]}
PAIRS = {
    struct.pack(">q", 1): ledger_data(lac=lac_packet(1, 1)),
    struct.pack(">q", FENCED): ledger_data(fenced=True),
}


def where(root: Path) -> dict[str, Any]:
    """Return the arguments of `take_over` for the directories of `Opened`."""
    paths = {
        name: [root / part / "current"] for name, part in (("ledger_dirs", "ledgers-0"), ("index_dirs", "ledgers-0"))
    }
    return {**paths, "journal_dirs": [root / "journal-0" / "current"], "map_bytes": 64 * MIB}


def java_disks(root: Path, *, kind: str) -> Path:
    """Create one ledger directory with ledger 1 open, 7 fenced, and 99 deleted but still in a log."""
    current = root / "ledgers-0" / "current"
    put_logs(current, LOGS)
    (root / "journal-0" / "current").mkdir(parents=True)
    (current / "lastMark").write_bytes(struct.pack(">qq", 0x20, 512))
    put_journal(root, 0x20)
    if kind == "rocksdb":
        put_rocksdb(current / "ledgers", PAIRS)
    if kind == "idx":
        put_index_file(current, 1, index_file(lac=lac_packet(1, 1)))
        put_index_file(current, FENCED, index_file(fenced=True))
    return current


def put_journal(root: Path, file_id: int, records: bytes = b"", *, grouped: bool = False) -> None:
    """Write a journal of a Java bookie, or an empty one of ours."""
    header = journal_model.header(6, grouped=grouped) + records
    (root / "journal-0" / "current" / f"{file_id:x}.txn").write_bytes(header.ljust(4096, b"\0"))


def hashes(directory: Path) -> dict[str, tuple[str, int]]:
    """Return the content and modification time of every file below a directory."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def indexed(current: Path) -> tuple[dict[int, Ledger], dict[int, list[int]]]:
    """Return the ledgers in our index, and the entries of each."""
    index = Index.open(current / "locations.lmdb", 64 * MIB)
    reader = index.reader()
    ledgers = {ledger.ledger: ledger for ledger in reader.ledgers()}
    entries: dict[int, list[int]] = {}
    for ledger in (1, FENCED, 99):
        runs = reader.runs(ledger)
        entries[ledger] = [run.first + i for run in runs for i, length in enumerate(run.lengths) if length]
    reader.close()
    index.close()
    return ledgers, {ledger: found for ledger, found in entries.items() if found}


@pytest.mark.parametrize("kind", ["rocksdb", "idx"])
def test_java_disks_become_ours(tmp_path: Path, kind: str) -> None:
    """Entries come from a scan and ledgers from Java's index, which is not changed; a deleted ledger stays deleted."""
    current = java_disks(tmp_path, kind=kind)
    before = hashes(current)
    one = Opened(tmp_path)
    held = one.direct.read(1, 0, count=10, size=MIB)
    assert held.entries() == [entry(1, at) for at in range(3)]
    held.release()
    one.stop()
    after = hashes(current)
    assert {path: seen for path, seen in after.items() if path in before and "lastMark" not in path} == {
        path: seen for path, seen in before.items() if "lastMark" not in path
    }
    ledgers, entries = indexed(current)
    assert ledgers == {1: Ledger(1, KEY, False, False, lac_packet(1, 1)), 7: Ledger(7, KEY, True, False, b"")}
    assert entries == HELD
    Opened(tmp_path).stop()


def test_the_newest_copy_is_the_one_found(tmp_path: Path) -> None:
    """Entry 1 of ledger 1 is in both logs, and the later one counts, as in Java's own rebuild."""
    current = java_disks(tmp_path, kind="rocksdb")
    take_over(**where(tmp_path)).close()
    index = Index.open(current / "locations.lmdb", 64 * MIB)
    reader = index.reader()
    hit = reader.lookup(1, 1)
    assert hit is not None
    assert hit.log_id == 0x1A
    reader.close()
    index.close()


@pytest.mark.thorough
@pytest.mark.parametrize("step", STEPS)
def test_an_end_behind_this_step_is_made_good(tmp_path: Path, step: str) -> None:
    """After kill -9 at each step the next start begins again, or continues, and ends with the same index."""
    current = java_disks(tmp_path, kind="idx")
    (current / "1b.log.compacting").write_bytes(b"half a copy")
    program = (
        "import os, signal, sys; from pathlib import Path\n"
        "from tests.storage.test_takeover import where; from bookie.storage.takeover import take_over\n"
        "def step(name):\n"
        "    if name == sys.argv[2]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "take_over(**where(Path(sys.argv[1])), step=step)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path), step], env=environment, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert (current / "locations.lmdb" / "data.mdb").exists() == (step in STEPS[STEPS.index("swapped") :])
    Opened(tmp_path).stop()
    assert not list(current.glob("*.compacting"))
    ledgers, entries = indexed(current)
    assert (set(ledgers), entries) == ({1, FENCED}, HELD)


def test_every_step_has_its_end(tmp_path: Path) -> None:
    """The tested steps are all steps that there are."""
    java_disks(tmp_path, kind="idx")
    seen: list[str] = []
    take_over(**where(tmp_path), step=seen.append).close()
    assert seen == STEPS


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    """Progress counts the bytes of entry logs, ascending to their sum."""
    current = java_disks(tmp_path, kind="idx")
    seen: list[tuple[int, int]] = []
    take_over(**where(tmp_path), progress=lambda done, of: seen.append((done, of))).close()
    total = sum(path.stat().st_size for path in current.glob("*.log"))
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)


def test_direct_layout_and_torn_tail(tmp_path: Path) -> None:
    """Logs of the direct-I/O logger, padded after each flush, and one cut off inside a record are read."""
    current = java_disks(tmp_path, kind="idx")
    for path in current.glob("*.log"):
        path.unlink()
    direct = log_model.build_direct([[entry(1, 0)], [entry(1, 1), entry(1, 2)]], zeros=8192)
    (current / "3.log").write_bytes(direct)
    (current / "4.log").write_bytes(log_model.build([entry(7, 0), entry(7, 1), entry(7, 2)], closed=False)[:-5])
    (current / "5.log").write_bytes(b"")
    (current / "6.log").write_bytes(bytes(5000))
    one = Opened(tmp_path)
    held = one.direct.read(1, 0, count=10, size=MIB)
    assert held.entries() == [entry(1, at) for at in range(3)]
    held.release()
    one.stop()
    assert indexed(current)[1] == HELD


def test_fences_before_the_mark(tmp_path: Path) -> None:
    """A checkpoint of idle Java storage moves the mark past fences and LACs in the journal only; they are found."""
    current = java_disks(tmp_path, kind="idx")
    key, fence, lac = (journal_model.MASTER_KEY, journal_model.FENCE, journal_model.LAC)
    records = [
        journal_model.record(1, key, struct.pack(">i", 20) + b"x" * 20),
        journal_model.record(1, lac, struct.pack(">i", 16) + lac_packet(1, 2)),
        journal_model.record(1, lac, struct.pack(">i", 16) + lac_packet(1, 0)),
        journal_model.record(1, fence),
        journal_model.record(99, fence),
    ]
    put_journal(tmp_path, 0x1F, b"".join(records))
    take_over(**where(tmp_path)).close()
    ledgers, _ = indexed(current)
    assert ledgers == {1: Ledger(1, KEY, True, False, lac_packet(1, 2)), 7: Ledger(7, KEY, True, False, b"")}


def test_keys_from_the_journal(tmp_path: Path) -> None:
    """If every ledger is fenced because there is no index, ledgers whose key is in a journal get it."""
    current = java_disks(tmp_path, kind="none")
    put_journal(tmp_path, 0x1F, journal_model.record(1, journal_model.MASTER_KEY, struct.pack(">i", 20) + KEY))
    take_over(**where(tmp_path), fence_all=True).close()
    assert {ledger.ledger: ledger.key for ledger in indexed(current)[0].values()} == {1: KEY, FENCED: b"", 99: b""}


# Leftovers of an interrupted compaction.


def test_leftovers_of_a_compaction(tmp_path: Path) -> None:
    """An unfinished copy is removed; a finished one too if its source or log exists, else it becomes the log."""
    current = java_disks(tmp_path, kind="idx")
    source = current / "1a.log"
    source.rename(current / "1b.log.1a.compacted")
    (current / "1c.log.0.compacted").write_bytes(log_model.build([entry(1, 0)], closed=True))
    (current / "1d.log.compacting").write_bytes(log_model.build([entry(1, 0)], closed=True)[:-7])
    (current / "lastId").write_text("1d\n")
    take_over(**where(tmp_path)).close()
    assert sorted(path.name for path in current.glob("*.log*")) == ["0.log", "1b.log"]
    assert indexed(current)[1] == HELD
    one = Opened(tmp_path)
    one.direct.add(entry(1, 3), KEY)
    one.stop()
    assert (current / "1e.log").exists(), "ids of leftovers are not used again"


def test_b1_an_adopted_copy_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its directory is synced before the index points at it: after a power failure nothing would look for it."""
    current = java_disks(tmp_path, kind="idx")
    (current / "1a.log").rename(current / "1b.log.1a.compacted")
    synced = []
    sync = os.fsync

    def noted(fd: int) -> None:
        sync(fd)
        built = (current / "locations.lmdb/data.mdb").exists()
        synced.append((Path(f"/proc/self/fd/{fd}").readlink(), (current / "1b.log").exists() and not built))

    monkeypatch.setattr(os, "fsync", noted)
    take_over(**where(tmp_path)).close()
    assert (current, True) in synced


def test_a_copy_under_its_decimal_name(tmp_path: Path) -> None:
    """Java recovers log 1a as `26.log`, to which its index does not point; a scan finds it by its name."""
    current = java_disks(tmp_path, kind="idx")
    (current / "1a.log").rename(current / "26.log")
    (current / "1a.log.0.compacted").hardlink_to(current / "26.log")
    (current / "0.log").unlink()
    (current / "2.log").write_bytes(log_model.build(LOGS[0], closed=True))
    take_over(**where(tmp_path)).close()
    assert sorted(path.name for path in current.glob("*.log*")) == ["2.log", "26.log"]
    assert indexed(current)[1] == HELD


# Takeovers that are refused.


def test_without_an_index_nothing_is_guessed(tmp_path: Path) -> None:
    """Without RocksDB and .idx files the start is refused, or every ledger is fenced if the operator says so."""
    current = java_disks(tmp_path, kind="none")
    with pytest.raises(StartRefused, match=r"neither a RocksDB database `ledgers` nor .idx files.*takeOverFencingAll"):
        take_over(**where(tmp_path))
    take_over(**where(tmp_path), fence_all=True).close()
    ledgers, entries = indexed(current)
    assert {ledger.fenced for ledger in ledgers.values()} == {True}
    assert entries == {**HELD, 99: [0]}


def test_without_a_checkpoint_the_journal_is_enough(tmp_path: Path) -> None:
    """A mark of zeros means that there was no checkpoint, so the journal alone shows every ledger."""
    current = java_disks(tmp_path, kind="none")
    (current / "lastMark").write_bytes(bytes(16))
    take_over(**where(tmp_path)).close()
    assert indexed(current) == ({}, {})


def test_without_the_binding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what is lost without the package, and how to install it."""
    java_disks(tmp_path, kind="rocksdb")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(StartRefused, match=r"install bookie\[java-disks\].*takeOverFencingAll=true.*fences every"):
        take_over(**where(tmp_path))
    take_over(**where(tmp_path), fence_all=True).close()


def test_a_damaged_rocksdb(tmp_path: Path) -> None:
    """The error includes RocksDB's own message; nothing is built, and the database is not changed."""
    current = java_disks(tmp_path, kind="rocksdb")
    (current / "ledgers" / "CURRENT").write_bytes(b"MANIFEST-999999\n")
    before = hashes(current)
    with pytest.raises(StartRefused, match=f"{current / 'ledgers'} cannot be read as a RocksDB database"):
        take_over(**where(tmp_path))
    assert hashes(current) == before


def test_a_running_java_bookie(tmp_path: Path) -> None:
    """RocksDB's lock is honoured at each start, and held while we run."""
    current = java_disks(tmp_path, kind="rocksdb")
    program = (
        "import fcntl, sys; file = open(sys.argv[1], 'r+b'); fcntl.lockf(file, fcntl.LOCK_EX)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(current / "ledgers" / "LOCK")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        with pytest.raises(StartRefused, match="LOCK is held by another process"):
            Opened(tmp_path)
    one = Opened(tmp_path)
    tried = subprocess.run(
        [*command[:2], program.replace("LOCK_EX", "LOCK_EX | fcntl.LOCK_NB"), command[3]],
        input=b"",
        capture_output=True,
        check=False,
    )
    assert b"held" not in tried.stdout
    one.stop()


def test_our_own_index_is_lost(tmp_path: Path) -> None:
    """If a bookie of ours ran last, Java's index is outdated, and a later fence would be forgotten."""
    current = java_disks(tmp_path, kind="rocksdb")
    put_journal(tmp_path, 0x21, grouped=True)
    with pytest.raises(StartRefused, match=f"{current / 'locations.lmdb'} is missing, but {current} has entry logs"):
        take_over(**where(tmp_path))


def test_java_ran_in_between(tmp_path: Path) -> None:
    """If Java ran after a takeover, our old index is not trusted; without it the disks are taken over again."""
    current = java_disks(tmp_path, kind="rocksdb")
    Opened(tmp_path).stop()
    newest = max(int(path.stem, 16) for path in (tmp_path / "journal-0" / "current").glob("*.txn"))
    put_journal(tmp_path, newest + 1)
    (current / "lastMark").write_bytes(struct.pack(">qq", newest + 1, 512))
    with pytest.raises(StartRefused, match=r"a Java bookie .* ran here after this one"):
        Opened(tmp_path)
    (current / "locations.lmdb").rename(tmp_path / "aside")
    Opened(tmp_path).stop()
    assert indexed(current)[1] == HELD


@pytest.mark.parametrize("kind", ["idx", "none"])
def test_several_directories_that_share_logs(tmp_path: Path, kind: str) -> None:
    """Interleaved storage puts a ledger into any directory, but our bookie looks in only one."""
    java_disks(tmp_path, kind=kind)
    with pytest.raises(StartRefused, match=r"2 ledgerDirectories .* share their entry logs.*re-replication"):
        Opened(tmp_path, ledger_dirs=2)


def test_several_directories_of_db_storage(tmp_path: Path) -> None:
    """Each directory is a store of its own, with ids of its own, as in our bookie."""
    for at, ledger in ((0, 4), (1, 5)):
        current = tmp_path / f"ledgers-{at}" / "current"
        put_logs(current, {3: [entry(ledger, 0)]})
        put_rocksdb(current / "ledgers", {struct.pack(">q", ledger): ledger_data()})
    one = Opened(tmp_path, ledger_dirs=2)
    for ledger in (4, 5):
        held = one.direct.read(ledger, 0, count=1, size=MIB)
        assert held.entries() == [entry(ledger, 0)]
        held.release()
    one.stop()


def test_a_foreign_log(tmp_path: Path) -> None:
    """A file that is not an entry log could hold entries, so it is reported and the start is refused."""
    current = java_disks(tmp_path, kind="idx")
    (current / "9.log").write_bytes(b"GIF89a" * 1000)
    with pytest.raises(StartRefused, match=r"9\.log: not an entry log .* move it out of the directory"):
        take_over(**where(tmp_path))


# Keys and values of the RocksDB database.


def test_keys_of_every_form(tmp_path: Path) -> None:
    """A short key overrides one of Java's rebuild; special keys are skipped; unreadable records are fenced."""
    pairs = {
        struct.pack(">q", 1): ledger_data(lac=b"short"),
        struct.pack(">qq", 1, 0): ledger_data(key=b"", fenced=True),
        struct.pack(">qq", 2, 0): ledger_data(key=b"", fenced=True, limbo=True),
        struct.pack(">q", 3): b"\xff\xff",
        struct.pack(">q", 4): ledger_data(key=b"secret"),
        struct.pack(">q", -0xEEFD): struct.pack(">q", 1),
        struct.pack(">q", -5): b"",
        b"odd": b"",
    }
    put_rocksdb(tmp_path / "ledgers", pairs)
    read = read_pairs(tmp_path / "ledgers")
    assert dict(read) == pairs
    assert ledgers_of(read, tmp_path) == {
        1: Ledger(1, KEY, False, False, b""),
        2: Ledger(2, b"", True, True, b""),
        3: Ledger(3, b"", True, False, b""),
        4: Ledger(4, bytes.fromhex("e793cbc379107648537183605cd361d3bb789a39"), False, False, b""),
    }


def test_given_back(tmp_path: Path) -> None:
    """Ledgers are written for Java and the previous database is kept, but not while in use or after a crash."""
    current = java_disks(tmp_path, kind="rocksdb")
    with pytest.raises(ToolRefused, match="has no index of a bookie of this kind"):
        give_back(tmp_path / "ledgers-0")
    one = Opened(tmp_path)
    assert one.direct.fence(1, KEY) >= 0
    one.stop()
    (current / "DIRTY").touch()
    with pytest.raises(ToolRefused, match="not shut down cleanly"):
        give_back(tmp_path / "ledgers-0")
    (current / "DIRTY").unlink()
    for kept in ("ledgers.before", "ledgers.before-2"):
        assert give_back(tmp_path / "ledgers-0") == 2
        assert (current / kept / "CURRENT").exists()
    assert ledgers_of(read_pairs(current / "ledgers"), tmp_path) == {
        1: Ledger(1, KEY, True, False, lac_packet(1, 1)),
        FENCED: Ledger(FENCED, KEY, True, False, b""),
    }


@pytest.mark.thorough
@pytest.mark.parametrize("step", GIVING_BACK)
def test_an_end_behind_this_step_of_giving_back_is_made_good(tmp_path: Path, step: str) -> None:
    """The next call begins again, the previous database is kept, and Java finds the ledgers."""
    current = java_disks(tmp_path, kind="rocksdb")
    Opened(tmp_path).stop()
    before = read_pairs(current / "ledgers")
    program = (
        "import os, signal, sys; from pathlib import Path; from bookie.storage.takeover.give_back import give_back\n"
        "def step(name):\n"
        "    if name == sys.argv[2]: os.kill(os.getpid(), signal.SIGKILL)\n"
        "give_back(Path(sys.argv[1]), step=step)\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "ledgers-0"), step]
    assert subprocess.run(command, cwd=ROOT, check=False).returncode == -signal.SIGKILL
    assert give_back(tmp_path / "ledgers-0") == 2
    assert read_pairs(current / "ledgers.before") == before
    assert set(ledgers_of(read_pairs(current / "ledgers"), tmp_path)) == {1, FENCED}
    assert not (current / "ledgers.new").exists()
    Opened(tmp_path).stop()


# Headers of .idx files.


def test_index_files(tmp_path: Path) -> None:
    """Index files two levels of folders down are found, including relocated, empty and damaged ones."""
    lac = lac_packet(0x1234, 5)
    put_index_file(tmp_path, 0x1234, index_file(lac=lac, fenced=True))
    put_index_file(tmp_path, 0, index_file(version=0, key=b""))
    put_index_file(tmp_path, 5, b"")
    put_index_file(tmp_path, 6, index_file()[:20])
    put_index_file(tmp_path, 8, index_file()).rename(tmp_path / "0" / "8" / "8.rloc")
    (tmp_path / "ledgers").mkdir()
    assert idx.read_ledgers(tmp_path) == {
        0x1234: Ledger(0x1234, KEY, True, False, lac),
        0: Ledger(0, b"", False, False, b""),
        6: Ledger(6, b"", True, False, b""),
    }


@given(
    key=st.binary(max_size=64), fenced=st.booleans(), lac=st.one_of(st.just(b""), st.binary(min_size=16, max_size=60))
)
def test_headers_come_back(key: bytes, fenced: bool, lac: bytes) -> None:
    """A header reads back as it was written, and any truncation of it is an error with a reason."""
    data = index_file(key=key, fenced=fenced, lac=lac)
    assert idx.parse_header(9, data) == Ledger(9, key, fenced, False, lac)
    for cut in range(20 + len(key) + len(lac)):
        with pytest.raises(ValueError, match=r"starts with|ends at|are left"):
            idx.parse_header(9, data[:cut])


@given(st.binary(max_size=200), st.integers(0, 60))
def test_any_bytes_are_a_header_or_an_error(data: bytes, at: int) -> None:
    """Any bytes are a header or an error."""
    good = index_file(lac=b"l" * 20)
    for one in (data, good[:at] + data + good[at:], good[:at] + data + good[at + len(data) :]):
        try:
            found = idx.parse_header(3, one)
        except ValueError:
            continue
        assert len(found.key) + len(found.lac) <= len(one)
