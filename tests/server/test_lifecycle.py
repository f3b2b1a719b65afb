"""A whole bookie: what exists while it serves, what is left when it stops, and its return after a kill."""

import json
import resource
import signal
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from bookie.errors import StartRefused
from bookie.metadata import open_driver
from bookie.metadata.bookies.service_info import parse_service_info
from bookie.metadata.driver import MetadataDriver
from bookie.server import checking, lifecycle, planes
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.whole_bookie import new_bookie, whole_bookie

Bookies = Callable[..., list[BookieProcess]]


@pytest.fixture
def store() -> Iterator[Callable[[BookieProcess], MetadataDriver]]:
    """The embedded store of a running bookie, as another process sees it."""
    opened: list[MetadataDriver] = []

    def connect(bookie: BookieProcess) -> MetadataDriver:
        driver = open_driver(f"grpc://{bookie.admin}")
        driver.start()
        opened.append(driver)
        return driver

    yield connect
    for driver in opened:
        driver.stop()


def dirty(bookie: BookieProcess) -> bool:
    return (bookie.ledgers / "current/DIRTY").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_start_and_stop(bookies: Bookies, number: int) -> None:
    """It listens where configured, marks its directories while it runs, and ends with 0 and without the mark."""
    (bookie,) = bookies()
    socket.create_connection(bookie.address).close()
    assert dirty(bookie)
    bookie.signal(number)
    assert bookie.wait() == 0
    assert not dirty(bookie)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(bookie.address)


def test_after_a_kill(bookies: Bookies) -> None:
    """The mark stays; the next start reports it and then runs normally."""
    (bookie,) = bookies()
    bookie.kill()
    assert dirty(bookie)
    bookie.start()
    assert "the last run did not end cleanly" in bookie.log_text()
    bookie.restart()
    assert bookie.log_text().count("the last run did not end cleanly") == 1


@pytest.mark.thorough
def test_after_a_kill_without_a_journal(bookies: Bookies) -> None:
    """B17: acknowledged entries may be lost, so the bookie does not start until an operator decides."""
    (bookie,) = bookies(journalWriteData="false")
    bookie.restart()
    bookie.kill()
    assert bookie.run() == 1
    assert "recover this bookie from its peers, or remove" in bookie.log_text()
    (bookie.ledgers / "current/DIRTY").unlink()
    bookie.start()


def test_after_a_kill_without_a_check_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """B17: dataIntegrityChecking=true without an installed check would let the bookie answer for lost entries."""
    settings = {"journalWriteData": "false", "dataIntegrityChecking": "true"}
    with whole_bookie(tmp_path, **settings):
        pass
    (tmp_path / "l0/current/DIRTY").touch()
    monkeypatch.setattr(lifecycle, "discover_startup_checks", lambda: iter(()))
    with pytest.raises(StartRefused, match="dataIntegrityChecking=true: no such check is installed"):
        new_bookie(tmp_path, **settings).start(lambda: None)
    assert (tmp_path / "l0/current/DIRTY").exists()
    monkeypatch.undo()
    with whole_bookie(tmp_path, **settings):
        pass


@pytest.mark.parametrize("broken", ["check", "listen", "start"])
def test_a_plane_that_breaks_off_is_tidied_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """What a plane took before its start or check failed is released. A start checks it first, and releases it."""
    seen: list[str] = []

    def fail() -> NoReturn:
        raise StartRefused("it cannot")

    def stop(_grace_s: float) -> None:
        seen.append("stopped")

    plane = SimpleNamespace(check=lambda: None, listen=lambda: None, start=lambda: ("", 0), stop=stop, stats=dict)
    setattr(plane, broken, fail)
    for module in (planes, checking):
        monkeypatch.setattr(module, "discover", lambda: iter([("broken", lambda _: plane)]))
    bookie = new_bookie(tmp_path)
    with pytest.raises(StartRefused, match="it cannot"):
        bookie.check() if broken == "check" else bookie.start(lambda: None)
    assert seen == ["stopped"] * {"check": 1, "listen": 2, "start": 3}[broken]


@pytest.mark.thorough
def test_registration_follows(bookies: Bookies, new_bookies: Bookies, store: Callable[..., MetadataDriver]) -> None:
    """B20: the bookie is registered at its address once it serves, read-only on request, and not after a stop."""
    owner, other = bookies(2)
    driver = store(owner)
    assert driver.bookies.present(read_only=False) == {owner.id, other.id}
    info = driver.bookies.info(other.id)
    assert info is not None
    endpoint = parse_service_info(other.id, info).client_endpoint()
    assert endpoint is not None
    assert (endpoint.host, endpoint.port) == other.address
    assert other.stop() == 0
    assert driver.bookies.present(read_only=False) == {owner.id}
    other.settings["forceReadOnlyBookie"] = "true"
    other.start()
    assert driver.bookies.present(read_only=False) == {owner.id}
    assert driver.bookies.present(read_only=True) == {other.id}


def test_a_full_disk(bookies: Bookies, store: Callable[..., MetadataDriver]) -> None:
    """B15: above the threshold the bookie starts and is registered as read-only."""
    (bookie,) = bookies(diskUsageThreshold="0.01", diskUsageWarnThreshold="0.01")
    driver = store(bookie)
    assert driver.bookies.present(read_only=True) == {bookie.id}


@pytest.mark.thorough
def test_a_full_disk_where_read_only_is_forbidden(new_bookies: Bookies) -> None:
    """With readOnlyModeEnabled=false it ends cleanly with 5."""
    (bookie,) = new_bookies(diskUsageThreshold="0.01", diskUsageWarnThreshold="0.01", readOnlyModeEnabled="false")
    assert bookie.run() == 5
    assert "readOnlyModeEnabled=false" in bookie.log_text()
    assert not dirty(bookie)


def add_frame(ledger: int, entry: int, payload: bytes) -> bytes:
    """Return a V2 add, encoded by hand."""
    body = struct.pack(">I20sqqqq", 2 << 24 | 1 << 16, b"k" * 20, ledger, entry, -1, len(payload)) + payload
    return struct.pack(">I", len(body)) + body


def read_frame(ledger: int, entry: int) -> bytes:
    """Return a V2 read, encoded by hand."""
    return struct.pack(">IIqq", 20, 2 << 24 | 2 << 16, ledger, entry)


def answer(connection: socket.socket) -> tuple[int, int] | None:
    """Return (code, entry) of the next response to an add or read; None if the bookie closed the connection."""
    head = receive(connection, 28)
    if len(head) < 28:
        return None
    size, _, code, _, entry = struct.unpack(">IIIqq", head)
    receive(connection, size - 24)
    return code, entry


def receive(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := connection.recv(size - len(data))):
        data += more
    return data


def add(connection: socket.socket, ledger: int, entry: int, payload: bytes) -> int | None:
    """Add an entry and wait; return the code, or None if the bookie closed the connection."""
    connection.sendall(add_frame(ledger, entry, payload))
    got = answer(connection)
    return None if got is None else got[0]


@pytest.mark.thorough
def test_a_failed_journal_write_ends_the_process(bookies: Bookies) -> None:
    """B2: nothing is acknowledged after the failed write, the exit code is 5, and the next start recovers."""
    (bookie,) = bookies()
    with socket.create_connection(bookie.address) as connection:
        assert add(connection, 1, 0, b"kept") == 0
        limit = max(path.stat().st_size for path in bookie.directory.glob("*.log")) + 200_000
        resource.prlimit(bookie.pid, resource.RLIMIT_FSIZE, (limit, limit))
        assert add(connection, 1, 1, bytes(300_000)) is None
    assert bookie.wait() == 5
    assert "a fatal failure occurred; nothing more is acknowledged" in bookie.log_text()
    assert dirty(bookie)
    bookie.start()
    assert bookie.stop() == 0


@pytest.mark.thorough
def test_a_read_only_bookie_refuses_adds(bookies: Bookies) -> None:
    """B15: EREADONLY while it is read-only, and only then."""
    writable, read_only = bookies(1) + bookies(1, forceReadOnlyBookie="true")
    for bookie, code in ((writable, 0), (read_only, 105)):
        with socket.create_connection(bookie.address) as connection:
            assert add(connection, 1, 0, b"x") == code


def test_a_stop_keeps_what_it_acknowledged(bookies: Bookies) -> None:
    """B1: a stop under load closes the connection, and every acknowledged add is there after the next start."""
    (bookie,) = bookies()
    with socket.create_connection(bookie.address) as connection:
        connection.sendall(b"".join(add_frame(7, entry, b"x" * 1000) for entry in range(500)))
        acknowledged = [answer(connection)]
        bookie.signal(signal.SIGTERM)
        while got := answer(connection):
            acknowledged.append(got)
    assert bookie.wait() == 0
    bookie.start()
    with socket.create_connection(bookie.address) as connection:
        for got in acknowledged:
            assert got is not None
            connection.sendall(read_frame(7, got[1]))
            assert answer(connection) == (0, got[1])


def stuff(connection: socket.socket) -> None:
    """Request far more than the socket takes, and never read it."""
    assert add(connection, 1, 0, bytes(1 << 20)) == 0
    connection.sendall(read_frame(1, 0) * 50)


@pytest.mark.thorough
def test_a_client_that_never_reads_does_not_hold_up_a_stop(bookies: Bookies) -> None:
    """shutdownTimeoutMs bounds the wait for outstanding responses."""
    (bookie,) = bookies(shutdownTimeoutMs="2000")
    with socket.create_connection(bookie.address) as connection:
        stuff(connection)
        assert bookie.stop() == 0


@pytest.mark.thorough
def test_a_second_signal_does_not_wait_for_answers(bookies: Bookies) -> None:
    """With an hour for a stop, only the second signal can have ended the wait; the flush is still done."""
    (bookie,) = bookies(shutdownTimeoutMs="3600000")
    with socket.create_connection(bookie.address) as connection:
        stuff(connection)
        bookie.signal(signal.SIGTERM)
        bookie.signal(signal.SIGINT)
        assert bookie.wait() == 0
    assert not dirty(bookie)


@pytest.mark.thorough
def test_ephemeral_port(bookies: Bookies) -> None:
    """With bookiePort=0 and a fixed id, the ready line names the port."""
    (bookie,) = bookies(bookiePort="0", allowEphemeralPorts="true", bookieId="roaming")
    assert bookie.port != 0
    assert bookie.id == "roaming"
    socket.create_connection(bookie.address).close()


@pytest.mark.thorough
def test_environment_overrides(new_bookies: Bookies) -> None:
    """BK_key overrides the file."""
    (bookie,) = new_bookies()
    bookie.environment["BK_bookieId"] = "from-the-environment"
    assert bookie.start().id == "from-the-environment"


def test_unknown_keys_warn(bookies: Bookies) -> None:
    """An unknown key does not stop the bookie, and the log names the most similar known one."""
    (bookie,) = bookies(jurnalSyncData="false")
    assert "unknown key jurnalSyncData" in bookie.log_text()
    assert "most similar known key is journalSyncData" in bookie.log_text()


@pytest.mark.thorough
def test_json_log(bookies: Bookies) -> None:
    """Every line is an object; one has the memory budget, which adds up."""
    (bookie,) = bookies(logFormat="json")
    assert bookie.stop() == 0
    lines = [json.loads(line) for line in bookie.log_text().splitlines()]
    (budget,) = [line for line in lines if line["msg"] == "memory budget"]
    parts = [
        value for name, value in budget.items() if name.endswith("_mib") and name not in ("total_mib", "allowed_mib")
    ]
    assert budget["total_mib"] == sum(parts) <= budget["allowed_mib"]
    assert lines[-1]["msg"] == "the bookie has stopped"


@pytest.mark.thorough
def test_spinning_threads_do_not_keep_it_from_stopping(new_bookies: Bookies) -> None:
    """Measurements run with two Python threads at 100 %; the bookie still starts and stops cleanly."""
    (bookie,) = new_bookies()
    bookie.environment["BOOKIE_SPIN_THREADS"] = "2"
    bookie.start()
    assert bookie.stop() == 0


@pytest.mark.thorough
def test_several_directories(bookies: Bookies) -> None:
    """Separate directories for journals, ledgers and indexes work over two starts."""
    (bookie,) = bookies(1)
    base = bookie.directory
    assert bookie.stop() == 0
    bookie.settings |= {
        "bookieId": "many",
        "journalDirectories": f"{base}/j1,{base}/j2",
        "ledgerDirectories": f"{base}/l1,{base}/l2",
        "indexDirectories": f"{base}/i1,{base}/i2",
    }
    bookie.start()
    bookie.restart()
    assert (base / "i2/current/VERSION").read_bytes() == (base / "j1/current/VERSION").read_bytes()
