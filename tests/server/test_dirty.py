"""Unclean ends: what the dirty marker of a run tells the next start, however that is configured (B17)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from bookie.client import ChannelV3, Digest
from bookie.errors import DataUnknown, StartRefused
from bookie.metadata import open_driver
from bookie.metadata.records.ledger_metadata import LedgerMetadata, LedgerState, Segment
from bookie.server.disks.dirty import DirtyMarker, Run, boot_id
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.whole_bookie import new_bookie, whole_bookie

CHECKED = {"dataIntegrityChecking": "true"}
UNJOURNALED = {"journalWriteData": "false"}
UNSYNCED = {"journalSyncData": "false"}
PATIENT = {"flushInterval": "3600000"}

Bookies = Callable[..., list[BookieProcess]]


def marker(root: Path, *, write_data: bool = True, sync_data: bool = True, boot: str = "b") -> DirtyMarker:
    """Return the marker of two directories and a run in boot `b`; by default it relies on the complete journal."""
    for name in ("l0", "l1"):
        (root / name / "current").mkdir(parents=True, exist_ok=True)
    return DirtyMarker([root / "l0", root / "l1"], Run(write_data=write_data, sync_data=sync_data, boot=boot))


def test_markers_are_set_and_cleared(tmp_path: Path) -> None:
    """Markers are set in every ledger directory, count if any has one, and are removed by clear."""
    one = marker(tmp_path)
    assert not one.is_set()
    one.set()
    one.set()
    assert [(tmp_path / name / "current/DIRTY").exists() for name in ("l0", "l1")] == [True, True]
    (tmp_path / "l0/current/DIRTY").unlink()
    assert one.is_set()
    one.clear()
    one.clear()
    assert not one.is_set()


def test_what_may_be_lost(tmp_path: Path) -> None:
    """The configuration of the dirty run counts, not that of the new one; a kill without a reboot keeps the cache."""
    marker(tmp_path, write_data=False).set()
    assert "journalWriteData=false" in marker(tmp_path).lost()
    marker(tmp_path, sync_data=False).set()
    assert not marker(tmp_path, boot="b").lost()
    assert "journalSyncData=false" in marker(tmp_path, boot="another").lost()
    assert marker(tmp_path, boot="").lost()
    marker(tmp_path, sync_data=False).settle()
    assert not marker(tmp_path, boot="another").lost()
    marker(tmp_path).set()
    assert not marker(tmp_path, write_data=False, sync_data=False, boot="another").lost()
    (tmp_path / "l1/current/DIRTY").write_text("journalWriteData=false\n")
    assert marker(tmp_path).lost(), "one directory is enough"


def test_an_empty_marker(tmp_path: Path) -> None:
    """An empty marker, of Apache BookKeeper or of an older bookie, counts as configured now, in an unknown boot."""
    assert not marker(tmp_path).lost()
    (tmp_path / "l0/current/DIRTY").touch()
    assert not marker(tmp_path).lost()
    assert marker(tmp_path, write_data=False).lost()
    assert marker(tmp_path, sync_data=False).lost()
    assert boot_id() == boot_id() != ""


def own(bookie: BookieProcess, ledger: int) -> LedgerMetadata:
    """Create an open ledger on this bookie alone in its metadata store."""
    driver = open_driver(f"grpc://{bookie.admin}")
    driver.start()
    metadata = LedgerMetadata(
        ensemble_size=1,
        write_quorum=1,
        ack_quorum=1,
        segments=(Segment(0, (bookie.id,)),),
        state=LedgerState.OPEN,
        password=b"secret",
    )
    driver.ledgers.create(ledger, metadata)
    driver.stop()
    return metadata


def write(bookie: BookieProcess, ledger: int, entry: int) -> None:
    """Add an entry, which must be acknowledged."""
    with ChannelV3.connect(*bookie.address) as channel:
        channel.add(ledger, entry, b"kept", digest=Digest.of(password=b"secret"), lac=entry - 1, length=4 * (entry + 1))


def read(bookie: BookieProcess, ledger: int, entry: int) -> bytes:
    """Return the end of the entry's payload."""
    with ChannelV3.connect(*bookie.address) as channel:
        return bytes(channel.read(ledger, entry)[-4:])


def reboot(bookie: BookieProcess) -> None:
    """Simulate a reboot of the machine."""
    path = bookie.ledgers / "current/DIRTY"
    path.write_text(path.read_text().replace(boot_id(), "another"))


@pytest.mark.thorough
def test_b17_a_kill_with_an_unsynced_journal(bookies: Bookies) -> None:
    """The page cache keeps everything."""
    (bookie,) = bookies(**UNSYNCED, **PATIENT)
    own(bookie, 1)
    write(bookie, 1, 0)
    bookie.kill()
    bookie.start()
    assert read(bookie, 1, 0) == b"kept"


@pytest.mark.thorough
@pytest.mark.parametrize("remains", [0, 4096, 1 << 20])
def test_b17_a_power_cut_with_an_unsynced_journal(bookies: Bookies, remains: int) -> None:
    """Entries that the disk may not have are not denied: there is no start without a check, which puts ledgers into
    limbo. The journal may lack anything, even what its mark names.
    """
    (bookie,) = bookies(**UNSYNCED, **PATIENT)
    own(bookie, 1)
    write(bookie, 1, 0)
    bookie.kill()
    newest = max((bookie.journal / "current").glob("*.txn"), key=lambda path: int(path.stem, 16))
    newest.write_bytes(newest.read_bytes()[:remains])
    reboot(bookie)
    bookie.settings["journalSyncData"] = "true"
    assert bookie.run() == 1
    assert "journalSyncData=false and a restart of the machine since" in bookie.log_text()
    bookie.settings |= CHECKED
    bookie.start()
    if remains > 4096:
        assert read(bookie, 1, 0) == b"kept"
    with pytest.raises(DataUnknown):
        read(bookie, 1, 1 if remains > 4096 else 0)


@pytest.mark.thorough
def test_b17_the_journal_is_switched_on_again(bookies: Bookies) -> None:
    """A crash without a journal is not forgotten because the next run has one."""
    (bookie,) = bookies(**UNJOURNALED, **PATIENT)
    own(bookie, 1)
    write(bookie, 1, 0)
    bookie.kill()
    bookie.settings["journalWriteData"] = "true"
    assert bookie.run() == 1
    bookie.settings |= CHECKED
    bookie.start()
    with pytest.raises(DataUnknown):
        read(bookie, 1, 0)
    bookie.restart()
    with pytest.raises(DataUnknown):
        read(bookie, 1, 0)


@contextmanager
def on_a_full_disk(root: Path, faulty: ModuleType, **settings: str) -> Iterator[None]:
    """Run a bookie that accepted an add, and stop it while its ledger disk is full."""
    bookie = new_bookie(root, **PATIENT, **settings)
    bookie._storage.files = faulty.FaultyFiles()
    addresses = bookie.start(lambda: None)
    with ChannelV3.connect(*addresses.data) as channel:
        channel.add(1, 0, b"kept", digest=Digest.of(password=b""), lac=-1, length=4)
    faulty.plan("pwritev", "ENOSPC", times=-1, suffix=".log")
    bookie.stop()
    faulty.clear()
    yield


def test_b17_a_stop_in_order_on_a_full_disk_without_a_journal(tmp_path: Path, faulty: ModuleType) -> None:
    """Entries that could not be flushed are lost, so the marker stays and the next start knows."""
    with on_a_full_disk(tmp_path, faulty, **UNJOURNALED):
        assert (tmp_path / "l0/current/DIRTY").exists()
        with pytest.raises(StartRefused, match="journalWriteData=false, did not end cleanly"):
            new_bookie(tmp_path).start(lambda: None)


@pytest.mark.parametrize("sync", ["true", "false"])
def test_b17_a_stop_in_order_on_a_full_disk_with_one(tmp_path: Path, faulty: ModuleType, sync: str) -> None:
    """The journal has them, synced, so the next start has everything even after a power failure."""
    with on_a_full_disk(tmp_path, faulty, journalSyncData=sync):
        path = tmp_path / "l0/current/DIRTY"
        path.write_text(path.read_text().replace(boot_id(), "another"))
        with whole_bookie(tmp_path) as running, ChannelV3.connect(*running.address) as channel:
            assert channel.read(1, 0)[-4:] == b"kept"
        assert not path.exists()


def test_a_marker_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An existing marker that claims no less may stay; otherwise the start is refused with the file's name."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    first = marker(tmp_path)
    monkeypatch.setattr("bookie.server.disks.dirty.replace_file", full)
    with pytest.raises(StartRefused, match="l0/current/DIRTY: no space is left"):
        first.set()
    monkeypatch.undo()
    marker(tmp_path).set()
    monkeypatch.setattr("bookie.server.disks.dirty.replace_file", full)
    marker(tmp_path, boot="another").set()
    less = marker(tmp_path, write_data=False)
    with pytest.raises(StartRefused, match="DIRTY: no space is left"):
        less.set()
