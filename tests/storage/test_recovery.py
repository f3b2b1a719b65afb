"""Recovery (replay of journals at start): what is restored, from which files, and when the start is refused (B3, B4,
B5, B8, B10, B11). The model writes the journal files, ours and Apache BookKeeper's.
"""

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from bookie.errors import StartRefused
from bookie.storage.marks import Mark
from bookie.storage.recovery import files_to_replay
from tests.reference import journal as model
from tests.reference.storage import entry, lac_packet
from tests.storage.opened import MIB, Opened

KEY = b"k" * 20
FILE = 0x20


def key_record(ledger: int, key: bytes = KEY) -> bytes:
    """Return the journal record of a ledger's key."""
    return model.record(ledger, model.MASTER_KEY, struct.pack(">i", len(key)) + key)


def lac_record(ledger: int, lac: int) -> bytes:
    """Return the journal record of an explicit LAC."""
    return model.record(ledger, model.LAC, struct.pack(">i", 16) + lac_packet(ledger, lac))


def framed(data: bytes) -> bytes:
    """Return the journal record of an entry."""
    return struct.pack(">i", len(data)) + data


def put(root: Path, file_id: int, content: bytes, journal: int = 0) -> Path:
    """Write a journal file of a bookie that was never started here."""
    path = root / f"journal-{journal}" / "current" / f"{file_id:x}.txn"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def entries(one: Opened, ledger: int, count: int = 100, first: int = 0) -> list[bytes]:
    """Return what the ledger holds from entry `first` on."""
    held = one.direct.read(ledger, first, count=count, size=MIB)
    found = held.entries()
    held.release()
    return found


ENTRIES = [entry(1, at, payload=bytes([at]) * 30) for at in range(4)]
CLOSING_BYTES = 32
"""Of a padding record, up to the end of the fields that close its group."""
GROUPS = [key_record(1) + framed(ENTRIES[0]), framed(ENTRIES[1]), framed(ENTRIES[2]) + framed(ENTRIES[3])]


def theirs(version: int, alignment: int = 512) -> bytes:
    """Return the same records as a file of Apache BookKeeper."""
    out = model.header(version, grouped=False)
    for records in GROUPS:
        out += records
        out += model.padding(len(out), alignment) if version >= 5 else b""
    return out


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_files_of_any_version(tmp_path: Path, version: int) -> None:
    """Journals of all versions of Apache BookKeeper, followed by preallocated zeros, are replayed."""
    put(tmp_path, FILE, theirs(version) + bytes(5000))
    one = Opened(tmp_path)
    assert (one.report.files, one.report.entries, one.report.skipped) == (1, 4, 0)
    assert entries(one, 1) == ENTRIES
    state = one.direct.ledger(1)
    assert state is not None
    assert (state.key, state.last, state.fenced) == (KEY, 3, False)
    one.stop()


def test_our_files(tmp_path: Path) -> None:
    """Groups with checksums are replayed, and the mark moves past them, so that they are not replayed again."""
    put(tmp_path, FILE, model.build(GROUPS, FILE))
    one = Opened(tmp_path)
    assert entries(one, 1) == ENTRIES
    one.crash()
    one = Opened(tmp_path)
    assert one.report.entries == 0
    assert entries(one, 1) == ENTRIES
    one.stop()


@pytest.mark.parametrize("cut", [1, 3, 4, 20, 60, 61, 110, 112, 140, 141, 147, 148, 152, 160, 167, 168, 300, 511])
@pytest.mark.parametrize("zeros", [0, 4096])
def test_a_torn_tail(tmp_path: Path, cut: int, zeros: int) -> None:
    """B3: the last group is restored completely or not at all, those before it are, and the next start works."""
    whole = model.build(GROUPS, FILE)
    start = len(model.build(GROUPS[:2], FILE))
    put(tmp_path, FILE, whole[: start + cut] + bytes(zeros))
    one = Opened(tmp_path)
    closed = len(GROUPS[2]) + CLOSING_BYTES
    assert entries(one, 1) in ([ENTRIES] if cut >= closed else [ENTRIES[:2]] if zeros == 0 else [ENTRIES[:2], ENTRIES])
    one.direct.add(entry(1, 9), KEY)
    assert one.direct.commit()
    one.crash()
    one = Opened(tmp_path)
    assert one.report.entries == 1
    one.stop()


def damaged_end(root: Path, at: int) -> tuple[str, int]:
    """Write a journal file whose last group has a flipped bit in byte `at`; return its name and the group's offset."""
    content = bytearray(model.build(GROUPS, FILE))
    start = len(model.build(GROUPS[:2], FILE))
    content[start + at] ^= 0x10
    return put(root, FILE, bytes(content)).name, start


@pytest.mark.parametrize("at", [0, 5, 40, 117, 121, 125, 128, 136, 147])
def test_damage_in_the_last_group(tmp_path: Path, at: int) -> None:
    """A flipped bit in the last acknowledged group made it look like a torn tail, which was silently dropped and
    denied. A completely written group was not torn by a crash, so the start is refused.
    """
    name, start = damaged_end(tmp_path, at)
    reported = rf"{name} is damaged at offset {start}: its last group .*skipReplayJournalInvalidRecord"
    with pytest.raises(StartRefused, match=reported):
        Opened(tmp_path, same_boot=True)


@pytest.mark.parametrize("settings", [{"same_boot": True, "skip_damaged_journal": True}, {}])
def test_a_start_without_the_last_group(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The group is dropped if configured, and after a power failure, which may leave any part of a write."""
    damaged_end(tmp_path, 40)
    one = Opened(tmp_path, **settings)
    assert entries(one, 1) == ENTRIES[:2]
    one.stop()


def test_a_kill_in_the_middle_of_a_write_is_no_damage(tmp_path: Path) -> None:
    """The system writes a group from its first byte on: one without its end was cut off, and was not acknowledged."""
    whole = model.build([*GROUPS[:2], framed(entry(1, 2, payload=bytes(9000)))], FILE)
    start = len(model.build(GROUPS[:2], FILE))
    put(tmp_path, FILE, whole[: start + 4096] + bytes(16384))
    one = Opened(tmp_path, same_boot=True)
    assert entries(one, 1) == ENTRIES[:2]
    one.stop()


@pytest.mark.parametrize("at", [0, 5, 24, 40, 70, 89])
def test_damage_in_the_middle(tmp_path: Path, at: int) -> None:
    """B3: damage before intact groups is refused, with place and remedy, or skipped if configured."""
    content = bytearray(model.build(GROUPS, FILE))
    start = len(model.build(GROUPS[:1], FILE))
    content[start + at] ^= 0x40
    path = put(tmp_path, FILE, bytes(content))
    with pytest.raises(
        StartRefused, match=rf"{path.name} is damaged at offset {start}.*skipReplayJournalInvalidRecord"
    ):
        Opened(tmp_path)
    one = Opened(tmp_path, skip_damaged_journal=True)
    assert entries(one, 1) == ENTRIES[:1]
    one.stop()


def test_a_torn_file_that_others_follow(tmp_path: Path) -> None:
    """B3: a torn group is normal only at the very end; files without records after it do not count."""
    whole = model.build(GROUPS, FILE)
    put(tmp_path, FILE, whole[:-490])
    put(tmp_path, FILE + 1, model.build([], FILE + 1) + bytes(4096))
    Opened(tmp_path).crash()
    shutil.rmtree(tmp_path / "ledgers-0")
    for path in (tmp_path / "journal-0" / "current").glob("*.txn"):
        path.unlink()
    put(tmp_path, FILE, whole[:-490])
    later = put(tmp_path, FILE + 1, model.build([framed(entry(1, 9))], FILE + 1))
    with pytest.raises(StartRefused, match=f"ends in a torn group, but records follow it in {later.name}"):
        Opened(tmp_path)


def test_a_file_that_the_mark_names_is_gone(tmp_path: Path) -> None:
    """B4: entries would be silently lost."""
    one = Opened(tmp_path)
    one.crash()
    [path] = (tmp_path / "journal-0" / "current").glob("*.txn")
    path.unlink()
    with pytest.raises(
        StartRefused, match=rf"lastMark names the journal file {path.name}, which is missing from .*; restore"
    ):
        Opened(tmp_path)


def test_which_files() -> None:
    """Files are replayed from the lowest mark of all ledger directories on; without a mark, all of them."""
    here = Path("current")
    assert files_to_replay(here, [1, 2, 5, 9], [Mark(5, 100)]) == [5, 9]
    assert files_to_replay(here, [1, 2, 5, 9], [Mark(9, 100), Mark(5, 100)]) == [5, 9]
    assert files_to_replay(here, [1, 2], [Mark(2, 100), Mark()]) == [1, 2]
    assert files_to_replay(here, [], [Mark()]) == []
    for files in ([], [1, 2], [9]):
        with pytest.raises(StartRefused, match=r"5\.txn"):
            files_to_replay(here, files, [Mark(5, 0), Mark(9, 0)])


def test_another_master_key(tmp_path: Path) -> None:
    """B11: the first key stays the ledger's; a contradicting one costs the ledger, not the bookie."""
    put(tmp_path, FILE, model.build([key_record(1), key_record(1, b"z" * 20)], FILE))
    one = Opened(tmp_path)
    state = one.direct.ledger(1)
    assert state is not None
    assert (state.key, one.report.refused, one.storage.stats()["quarantined_ledgers"]) == (KEY, 1, 1)
    one.stop()


def test_the_key_that_came_late(tmp_path: Path) -> None:
    """B11: an all-zero key is replaced once, at run time and in replay; a key that is logged later changes nothing."""
    put(tmp_path, FILE, model.build([key_record(1, bytes(20)) + key_record(1) + key_record(1, bytes(20))], FILE))
    one = Opened(tmp_path)
    state = one.direct.ledger(1)
    assert state is not None
    assert state.key == KEY
    one.stop()


def test_ledgers_that_nobody_knows(tmp_path: Path) -> None:
    """B14: records of a deleted ledger without its key do not restore it."""
    records = framed(entry(2, 0)) + model.record(2, model.FENCE) + lac_record(2, 5)
    put(tmp_path, FILE, model.build([records, *GROUPS], FILE))
    one = Opened(tmp_path)
    assert (one.report.entries, one.report.skipped, one.report.fences) == (4, 3, 0)
    assert one.direct.ledger(2) is None
    assert one.direct.read(2, 0).status == "NO_LEDGER"
    one.stop()


def test_fences_and_lacs(tmp_path: Path) -> None:
    """B8, B10: a fence and the highest explicit LAC stay through two starts."""
    records = key_record(1) + lac_record(1, 7) + lac_record(1, 3) + model.record(1, model.FENCE) + framed(ENTRIES[0])
    put(tmp_path, FILE, model.build([records], FILE))
    for _ in range(2):
        one = Opened(tmp_path)
        state = one.direct.ledger(1)
        assert state is not None
        assert (state.fenced, state.explicit_lac) == (True, lac_packet(1, 7))
        one.crash()
    one = Opened(tmp_path)
    assert entries(one, 1) == ENTRIES[:1], "replay does not ask for the fence"
    one.stop()


def test_a_file_that_is_no_journal(tmp_path: Path) -> None:
    """A file that is not a journal is reported, not skipped."""
    put(tmp_path, FILE, b"BKLG" + struct.pack(">i", 99) + bytes(1000))
    with pytest.raises(StartRefused, match=r"20\.txn cannot be replayed \(version 99"):
        Opened(tmp_path)


def test_twice_is_once(tmp_path: Path) -> None:
    """B5: with an older mark, as after a crash before it was written, replaying the same records changes nothing."""
    one = Opened(tmp_path, ledger_dirs=2, journals=2)
    for version in (b"one", b"two"):
        for at in range(6):
            one.direct.add(entry(at % 3, at, payload=version))
    one.direct.fence(1)
    assert one.direct.commit()
    one.crash()
    marks = {path: path.read_bytes() for path in tmp_path.glob("ledgers-*/current/lastMark*")}
    assert {path.name for path in marks} == {"lastMark.0", "lastMark.1"}
    for _ in range(3):
        one = Opened(tmp_path, ledger_dirs=2, journals=2)
        assert (one.report.entries, one.report.fences) == (12, 1)
        for at in range(6):
            held = one.direct.read(at % 3, at)
            assert held.entries() == [entry(at % 3, at, payload=b"two")]
            held.release()
        one.crash()
        for path, content in marks.items():
            path.write_bytes(content)


def test_a_start_removes_used_files(tmp_path: Path) -> None:
    """They hold nothing that is needed: what was added is flushed, or in the files that are replayed."""
    settings: dict[str, Any] = {"backups_max": 0, "file_bytes_max": MIB, "write_cache_bytes": 32 * MIB}
    kept = [entry(1, at, payload=bytes([at]) * 900_000) for at in range(12)]
    one = Opened(tmp_path, **settings)

    def add(added: list[bytes]) -> None:
        for data in added:
            one.direct.add(data, KEY)
            assert one.direct.commit()

    add(kept[:10])
    one.checkpoint()
    add(kept[10:])
    used = list(tmp_path.glob("journal-0/current/*.spare"))
    assert len(used) > 2
    one.crash()
    one = Opened(tmp_path, **settings)
    assert not any(path.exists() for path in used)
    assert [data for at in range(12) for data in entries(one, 1, first=at, count=1)] == kept
    one.stop()


def test_replay_flushes_what_does_not_fit(tmp_path: Path) -> None:
    """A journal larger than the write cache is replayed."""
    one = Opened(tmp_path, write_cache_bytes=8 * MIB)
    stored = [entry(1, at, payload=bytes([at % 251]) * 10_000) for at in range(300)]
    for data in stored:
        if not one.direct.add(data) or len(data) * 100 % 7 == 0:
            assert one.direct.commit()
    assert one.direct.commit()
    one.crash()
    one = Opened(tmp_path, write_cache_bytes=MIB)
    assert one.report.entries == 300
    for at in range(0, 300, 50):
        held = one.direct.read(1, at, count=50, size=MIB)
        assert held.entries() == stored[at : at + 50]
        held.release()
    one.stop()


def test_the_key_that_came_with_a_second_fence(tmp_path: Path) -> None:
    """B11: the key of a second fence is durable when the fence is answered."""
    one = Opened(tmp_path)
    one.direct.fence(1, bytes(20))
    assert one.direct.commit()
    assert one.direct.fence(1, KEY) > 1, "the answer waits for the key's group"
    assert one.direct.commit()
    one.crash()
    one = Opened(tmp_path)
    state = one.direct.ledger(1)
    assert state is not None
    assert (state.key, state.fenced) == (KEY, True)
    one.stop()
