"""The admin port of a bookie whose ledger disk is full, and whose metadata store is silent when it is stopped."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.admin.bkadmin.conftest import BkAdmin
from tests.crash.small_disk import SmallDisk, Unavailable
from tests.fixtures.bookies import BookieProcess
from tests.server.test_lifecycle import add

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives"),
]
DISK_BYTES = 40 << 20
STOP_S_MAX = 10.0


class SmallBookie(BookieProcess):
    """A bookie whose ledger directory is a small disk."""

    new_programs = True

    def __init__(self, directory: Path, metadata: str, disk: SmallDisk) -> None:
        super().__init__(
            directory, metadata, {"ledgerDirectories": str(disk.directory), "diskCheckInterval": "3600000"}
        )
        self._disk = disk

    def command(self, *options: str) -> list[str]:
        return self._disk.enter(super().command(*options))


@pytest.fixture
def owner(bookies: Callable[..., list[BookieProcess]]) -> BookieProcess:
    """The bookie that holds the metadata store."""
    return bookies()[0]


@pytest.fixture
def small(owner: BookieProcess, tmp_path: Path) -> Iterator[tuple[BookieProcess, SmallDisk]]:
    """A bookie with entries that are not flushed, and its disk, which is full then."""
    directory = tmp_path / "disk"
    directory.mkdir()
    try:
        with SmallDisk(directory, "tmpfs", DISK_BYTES) as disk:
            bookie = SmallBookie(tmp_path / "small", f"grpc://{owner.admin}", disk)
            bookie.start()
            with socket.create_connection(bookie.address) as connection:
                assert not any(add(connection, 1, entry, bytes(100_000)) for entry in range(100))
            disk.fill()
            yield bookie, disk
            bookie.kill()
    except Unavailable as reason:
        pytest.skip(f"NOT TESTED: {reason}")


def test_what_a_full_disk_shows(owner: BookieProcess, small: tuple[BookieProcess, SmallDisk], bkadmin: BkAdmin) -> None:
    """A flush that found no space is refused, and from then on the state says so; a stop with a silent store, too, is
    quick and clean, and the next start serves what the journal has.
    """
    bookie, disk = small
    asked = ("--admin", bookie.admin, "--token-file", disk.inside / "admin.token")
    flushed = bkadmin("flush", *asked)
    assert (flushed.code, flushed.err.count("\n")) == (1, 1)
    assert "no space for what was to be flushed" in flushed.err
    status = bkadmin("status", *asked, "-o", "json")
    assert (status.code, status.json["state"], status.json["read_only_reasons"]) == (0, "read-only", ["disk"])
    assert {one["kind"]: one["level"] for one in status.json["disks"]}["ledger"] == "full"
    owner.freeze()
    begun = time.monotonic()
    code = bookie.stop()
    took = time.monotonic() - begun
    owner.thaw()
    assert (code, took < STOP_S_MAX) == (0, True), bookie.log_text()[-4000:]
    disk.free()
    bookie.start()
    with socket.create_connection(bookie.address) as connection:
        assert add(connection, 1, 100, b"x") == 0
    assert bkadmin("flush", *asked).code == 0
    assert bookie.stop() == 0
