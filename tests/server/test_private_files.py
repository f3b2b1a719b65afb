"""Files that a bookie writes are accessible to nobody else, whatever the umask."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bookie.server.disks.directories import Directories
from bookie.storage.tools.index_swap import new_index
from tests.fixtures.bookies import BookieProcess
from tests.hostile.local import local_bookie
from tests.hostile.peer import Peer, add

Bookies = Callable[..., list[BookieProcess]]
ANYBODY = stat.S_IRWXG | stat.S_IRWXO
WROTE = {"current", "VERSION", "lastMark", "locations.lmdb", "data.mdb", "lock.mdb", "lastId", "0.log"}


@pytest.fixture
def wide_open() -> Iterator[None]:
    """A umask that removes no permissions."""
    before = os.umask(0)
    yield
    os.umask(before)


def wide(directory: Path) -> list[str]:
    """Return what others may access in it."""
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.rglob("*"))}
    return sorted(f"{path.relative_to(directory.parent)} {mode:o}" for path, mode in found.items() if mode & ANYBODY)


@pytest.mark.usefixtures("wide_open")
def test_a_bookie_of_the_process(new_bookies: Bookies, tmp_path: Path) -> None:
    """S8: journals, entry logs, index, marks, cookies, access log and metadata are private, also after a restart."""
    store = tmp_path / "above" / "store"
    given = {
        "metadataServiceUri": f"lmdb://{store}",
        "accessLogFile": str(tmp_path / "access" / "log"),
        "accessLogSampleRate": "1.0",
    }
    (tmp_path / "access").mkdir(mode=0o700)
    (bookie,) = new_bookies(1, **given)
    for _ in range(2):
        bookie.start()
        with Peer(bookie.address) as peer:
            assert peer.ask(add(1, 0, b"x")).code == 0
        bookie.stop()
    made = [bookie.journal, bookie.ledgers, store.parent, tmp_path / "access"]
    assert {path.name for root in made for path in root.rglob("*")} > WROTE
    assert [line for root in made for line in wide(root)] == []


@pytest.mark.usefixtures("wide_open")
def test_what_the_parts_write(tmp_path: Path) -> None:
    """S8: the same without a process of its own, whose umask would hide it, and for a rebuilt index."""
    with local_bookie(tmp_path / "bookie") as bookie:
        with bookie.peer() as peer:
            assert peer.ask(add(1, 0, b"x")).code == 0
        checkpoints = bookie.storage.checkpoints
        assert checkpoints is not None
        checkpoints.flush_alone()
    with new_index(tmp_path / "index" / "locations.lmdb", map_bytes=1 << 30):
        pass
    assert (tmp_path / "index/locations.lmdb/data.mdb").exists()
    assert wide(tmp_path / "bookie") + wide(tmp_path / "index") == []


@pytest.mark.parametrize(("mode", "reported"), [(0o755, True), (0o750, False)])
def test_what_is_there_stays_and_is_told(mode: int, reported: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A directory of an earlier version keeps its mode, and one line names it if everyone may enter it."""
    root = Path(tempfile.mkdtemp(prefix="bookie-modes-"))
    try:
        root.chmod(0o755)
        current = root / "journal" / "current"
        current.mkdir(parents=True)
        (root / "journal").chmod(0o755)
        current.chmod(mode)
        locks = Directories([root / "journal"])
        locks.acquire()
        locks.abandon()
        assert stat.S_IMODE(current.stat().st_mode) == mode
        lines = [record for record in caplog.records if "can access" in record.message]
        assert [vars(record)["remedy"] for record in lines] == [f"chmod -R go= {root / 'journal'}"] * reported
    finally:
        shutil.rmtree(root)


def test_the_unit_of_systemd() -> None:
    """Its state directory and what is written there belong to the bookie alone."""
    unit = (Path(__file__).parents[2] / "conf/systemd/bookie.service").read_text().splitlines()
    assert {"UMask=0077", "StateDirectoryMode=0700"} <= set(unit)
