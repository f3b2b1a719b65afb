"""The runbook of a lost disk, by commands alone: docs/operations.md."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bookie.client import BookKeeper, ChannelV3
from bookie.errors import DataUnknown, NoSuchEntry
from bookie.storage.tools import cookie_files
from tests.admin.bkadmin.conftest import BkAdmin
from tests.fixtures.bookies import BookieProcess, metadata_of

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")
ENTRIES = 20


@pytest.fixture
def three(new_bookies: Callable[..., list[BookieProcess]], tmp_path: Path) -> list[BookieProcess]:
    """Three bookies, of which the last has two ledger directories and keeps no journal that it does not need."""
    first, second = new_bookies(2)
    [third] = new_bookies(
        1,
        metadataServiceUri=f"grpc://127.0.0.1:{first.settings['adminPort']}",
        ledgerDirectories=f"{tmp_path}/lost,{tmp_path}/kept",
        journalMaxBackups="0",
    )
    return [bookie.start() for bookie in (first, second, third)]


@pytest.fixture
def ledgers(three: list[BookieProcess]) -> list[int]:
    """Two closed ledgers and two that nobody closed, one of each in either directory; no journal has their entries."""
    found = []
    with BookKeeper(metadata_of(three)) as bk:
        for closed in (True, True, False, False):
            ledger = bk.create_ledger(ensemble_size=3, write_quorum_size=3, ack_quorum_size=3, password=b"")
            for number in range(ENTRIES):
                ledger.append(b"entry %d" % number)
            found.append(ledger.id)
            if closed:
                ledger.close()
        three[2].restart()
    return found


def no_space(path: Path, _text: bytes) -> None:
    """Fail as on a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device", str(path))


@pytest.mark.thorough
def test_a_lost_disk_is_replaced_by_commands(
    three: list[BookieProcess], ledgers: list[int], bkadmin: BkAdmin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is denied until everything was copied back, and then all is trusted."""
    third, lost = three[2], tmp_path / "lost"
    monkeypatch.setenv("BOOKIE_METADATA_URI", metadata_of(three))
    monkeypatch.setenv("BOOKIE_CONF", str(third.conf))
    ours = [ledger for ledger in ledgers if ledger % 2 == 0]
    limbo = ours[1:]
    assert bkadmin("replacedisk", lost, "--yes").code == 1  # the bookie runs
    assert third.stop() == 0
    assert "is not empty" in bkadmin("replacedisk", lost, "--yes").err
    shutil.rmtree(lost)
    lost.mkdir(0o700)
    assert bkadmin("replacedisk", tmp_path, "--yes").code == 1  # it is none of the bookie's
    assert "would" in bkadmin("replacedisk", lost, "--dry-run").out
    assert list(lost.iterdir()) == []
    with monkeypatch.context() as full:
        full.setattr(cookie_files, "write_cookie_file", no_space)
        assert bkadmin("replacedisk", lost, "--yes").code == 1
    assert third.run() == 1  # it is not complete, so the bookie does not start on it
    marked = bkadmin("replacedisk", lost, "--yes", "-o", "json").json
    assert (marked["ledgers"], marked["limbo"]) == (len(ours), limbo)
    third.start()
    with ChannelV3.connect(*third.address) as channel, pytest.raises(DataUnknown):
        channel.read(limbo[0], 0)
    looked = bkadmin("restorebookie", third.id, "--query", "-o", "json")
    assert (looked.code, looked.json["missing"], looked.json["copied"]) == (3, ENTRIES, 0)
    copied = bkadmin("restorebookie", third.id, "-o", "json")
    assert (copied.code, copied.json["copied"], copied.json["incomplete"]) == (3, ENTRIES, [])
    assert copied.json["limbo"] == ledgers[2:]
    with BookKeeper(metadata_of(three)) as bk:
        for one in ledgers[2:]:
            bk.open_ledger(one, password=b"").close()  # this recovers it
    again = bkadmin("restorebookie", third.id, "-o", "json")
    assert (again.code, again.json["limbo"], again.json["incomplete"]) == (0, [], [])
    with ChannelV3.connect(*third.address) as channel:
        assert all(channel.read(one, entry) for one in ledgers for entry in range(ENTRIES))
    assert third.stop() == 0
    cleared = bkadmin("clearlimbo", "--yes", "-o", "json")
    assert (cleared.code, cleared.json) == (0, {"cleared": len(limbo), "left": []})
    third.start()
    with ChannelV3.connect(*third.address) as channel, pytest.raises(NoSuchEntry):
        channel.read(limbo[0], ENTRIES)
