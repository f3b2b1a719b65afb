"""Damaged files at start are reported with a remedy and left unchanged, and the other files are used."""

import logging
import os
import struct
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookie.errors import StartRefused
from bookie.storage.bad_files import bad_logs, has_sound_index
from bookie.storage.tools.check_logs import check_log
from bookie.storage.tools.log_files import LogFile
from tests.fixtures.draws import examples
from tests.reference.storage import Stores, entry
from tests.storage.opened import MIB, Opened, check_index

KEY = b"k" * 20
HEADER = struct.Struct(">4siqi")


def filled(root: Path) -> tuple[Stores, list[Path]]:
    """Store entries in two closed logs and an open one; return a model of the contents, and the logs."""
    one, model = Opened(root, log_bytes_max=8192), Stores()
    for at in range(30):
        data = entry(1, at, payload=bytes(500))
        one.direct.add(data, KEY)
        model.add(data, KEY, recovery=False)
        if at % 10 == 9:
            assert one.direct.commit()
            one.checkpoint()
    one.stop()
    return model, sorted((one.ledger_dirs[0] / "current").glob("*.log"))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "less than a header": lambda good: good[:1000],
    "zeros": lambda good: bytes(len(good)),
    "another program wrote it": lambda good: b"ELF!" + good[4:],
    "version 2": lambda good: good[:4] + struct.pack(">i", 2) + good[8:],
    "the file is truncated": lambda good: good[:2048],
    "the header is wrong": lambda good: good[:8] + struct.pack(">q", -5) + good[16:],
    "no ledgers map": lambda good: good[:8] + struct.pack(">q", 1024) + good[16:],
}


@pytest.mark.parametrize("words", DAMAGE)
def test_a_damaged_log(words: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A damaged log is reported in one line and left unchanged; other logs are read, and its entries are answered
    with EIO or correctly.
    """
    model, logs = filled(tmp_path)
    logs[0].write_bytes(DAMAGE[words](logs[0].read_bytes()))
    before = logs[0].read_bytes()
    one = Opened(tmp_path, log_bytes_max=8192)
    reported = [record for record in caplog.records if record.getMessage() == "an entry log is damaged"]
    assert [(getattr(record, "file", None), words in str(getattr(record, "problem", ""))) for record in reported] == [
        (logs[0], True)
    ]
    assert reported[0].levelno == logging.ERROR
    good = 0
    for at in sorted(model.ledgers[1].entries):
        held = one.direct.read(1, at, count=1, size=MIB)
        assert held.status in {"OK", "IO_ERROR"}
        if held.status == "OK":
            assert (held.status, held.entries()) == model.read(1, at, 1, MIB)
            good += 1
        held.release()
    assert good >= 10
    one.stop()
    assert logs[0].read_bytes() == before


def test_what_is_no_file(tmp_path: Path) -> None:
    """A directory, a dangling link and an unreadable file in the place of a log are reported."""
    _, logs = filled(tmp_path)
    directory = logs[0].parent
    (directory / "77.log").mkdir()
    (directory / "78.log").symlink_to(tmp_path / "none")
    found = {bad.path.name: bad.problem for bad in bad_logs(directory)}
    assert found.keys() == {"77.log", "78.log"}
    assert "not a regular file" in found["77.log"]
    assert "cannot be read" in found["78.log"]
    if os.geteuid():
        logs[0].chmod(0)
        assert "Permission denied" in {bad.path: bad.problem for bad in bad_logs(directory)}[logs[0]]
    Opened(tmp_path).stop()


@settings(max_examples=examples(50), deadline=None)
@given(st.data())
def test_any_head(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Any bytes give a result, and a header that passes the check is one that a scan accepts."""
    directory = tmp_path_factory.mktemp("logs")
    version = data.draw(st.integers(-2, 3))
    at = data.draw(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(1000, 1200)))
    head = HEADER.pack(data.draw(st.sampled_from([b"BKLO", b"BKLE"])), version, at, data.draw(st.integers(-1, 3)))
    text = data.draw(st.sampled_from([head, head[:9], b""])) + bytes(data.draw(st.integers(0, 1200)))
    path = directory / "a.log"
    path.write_bytes(text)
    if not list(bad_logs(directory)):
        assert not check_log(LogFile(10, path, len(text))).problem


def test_our_own_logs_are_sound(tmp_path: Path) -> None:
    """Open logs, closed logs, and a directory without logs pass the check."""
    model, logs = filled(tmp_path)
    assert len(logs) >= 3
    assert not list(bad_logs(logs[0].parent))
    check_index((logs[0].parent.parent,), model)


def cut_off(index: Path) -> None:
    with (index / "data.mdb").open("r+b") as file:
        file.truncate(12288)


def no_magic(index: Path) -> None:
    with (index / "data.mdb").open("r+b") as file:
        file.write(os.urandom(8192))


def no_magic_in_one_meta_page(index: Path) -> None:
    with (index / "data.mdb").open("r+b") as file:
        file.seek(4096 + 16)
        file.write(bytes(4))


def other_version_in_one_meta_page(index: Path) -> None:
    with (index / "data.mdb").open("r+b") as file:
        file.seek(4096 + 20)
        file.write(bytes(4))


def a_directory(index: Path) -> None:
    (index / "data.mdb").unlink()
    (index / "data.mdb").mkdir()


@pytest.mark.parametrize(
    "damage", [cut_off, no_magic, no_magic_in_one_meta_page, other_version_in_one_meta_page, a_directory]
)
def test_a_damaged_index(damage: object, tmp_path: Path) -> None:
    """B7: a damaged index is refused with the remedy before LMDB trusts it, and nothing is changed."""
    _, logs = filled(tmp_path)
    index = logs[0].parent / "locations.lmdb"
    damage(index)  # type: ignore[operator]
    before = contents(index)
    told = rf"{index / 'data.mdb'}: .*rebuild it from the entry logs \(bookie.storage.tools.rebuild_index\)"
    with pytest.raises(StartRefused, match=told):
        Opened(tmp_path)
    assert contents(index) == before


def test_a_short_index_may_be_sound(tmp_path: Path) -> None:
    """LMDB does not write a page that a transaction allocates and frees, so a sound file may be shorter."""
    environment = lmdb.open(str(tmp_path), map_size=MIB, max_dbs=4)
    for name in (b"locations", b"ledgers"):
        environment.open_db(name)
    environment.close()
    file = tmp_path / "data.mdb"
    meta = bytearray(file.read_bytes())
    for at in (0, 4096):
        (last,) = struct.unpack_from("<Q", meta, at + 136)
        struct.pack_into("<Q", meta, at + 136, last + 5)
    file.write_bytes(meta)
    assert has_sound_index(tmp_path)
    assert not has_sound_index(tmp_path / "none")


def test_an_index_appears_as_a_whole(tmp_path: Path) -> None:
    """A full disk or power cut while LMDB creates the index leaves any pages of it. They are in a directory of their
    own, so a later start is not refused because of them, and an index in its place always has its first commit.
    """
    building = tmp_path / "ledgers-0" / "current" / "locations.lmdb.new"
    building.mkdir(parents=True)
    (building / "data.mdb").write_bytes(bytes(100))
    (building / ".lock.mdb.7").write_bytes(b"")
    opened = Opened(tmp_path)
    opened.stop()
    assert has_sound_index(tmp_path / "ledgers-0" / "current" / "locations.lmdb")
    assert not building.exists()


@pytest.mark.parametrize("size", [4096, 2 * 4096])
def test_a_short_file_with_a_commit_is_refused(tmp_path: Path, size: int) -> None:
    """A meta page that names a commit proves that pages are missing."""
    environment = lmdb.open(str(tmp_path), map_size=MIB, max_dbs=4)
    for name in (b"locations", b"ledgers"):
        environment.open_db(name)
    environment.close()
    os.truncate(tmp_path / "data.mdb", size)
    with pytest.raises(StartRefused):
        has_sound_index(tmp_path)


def test_a_meta_page_whose_write_failed_is_no_damage(tmp_path: Path) -> None:
    """When the disk fails the write of a meta page, LMDB puts the old transaction back, but leaves the new trees. The
    page is the older one of the two, so the index is sound and the next start serves.
    """
    data = [entry(1, at) for at in range(3)]
    opened = Opened(tmp_path)
    for one in data:
        opened.direct.add(one, KEY)
    opened.stop()
    with (tmp_path / "ledgers-0" / "current" / "locations.lmdb" / "data.mdb").open("r+b") as file:
        pages = file.read(2 * 4096)
        newest = [struct.unpack_from("<QQ", pages, at + 136) for at in (0, 4096)]
        older = 0 if newest[0][1] < newest[1][1] else 4096
        file.seek(older + 128)
        file.write(struct.pack("<Q", 1_000_000))
    opened = Opened(tmp_path)
    for at, one in enumerate(data):
        held = opened.direct.read(1, at, count=1, size=MIB)
        assert held.entries() == [one]
        held.release()
    opened.stop()
