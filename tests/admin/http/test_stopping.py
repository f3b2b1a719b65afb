"""A stop of the bookie while HTTP requests are in progress: they are answered, and their threads do not delay it."""

import http.client
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bookie.client import BookKeeper
from bookie.metadata import open_driver
from tests.admin.http.conftest import Answer, Port
from tests.fixtures.bookies import BookieProcess

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

Bookies = Callable[..., list[BookieProcess]]
HTTP = {"httpServerEnabled": "true", "httpServerPort": "0"}
LEDGERS_MAX = 200
WAIT_S = 60.0
ESTABLISHED = "01"


def ledger_on(bookie: BookieProcess, uri: str) -> int:
    """Write a ledger with one entry that only this bookie has; return its id."""
    driver = open_driver(uri)
    driver.start()
    try:
        with BookKeeper(uri) as bk:
            for _ in range(LEDGERS_MAX):
                with bk.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1, password=b"") as ledger:
                    ledger.append(b"entry")
                if driver.ledgers.read(ledger.id).value.segments[0].bookies == (bookie.id,):
                    return int(ledger.id)
    finally:
        driver.stop()
    raise AssertionError("the other bookie gets all ledgers")


def test_a_request_that_waits_for_another_bookie(new_bookies: Bookies) -> None:
    """The bookie stops in time, with 0, although the request could wait for a silent bookie much longer; the client is
    told in words, and the log has no traceback.
    """
    bookie, silent = new_bookies(2, **HTTP, httpServerRequestTimeoutMs="100000", shutdownTimeoutMs="15000")
    bookie.new_programs = True
    bookie.start()
    silent.start()
    ledger = ledger_on(silent, f"grpc://{bookie.admin}")
    silent.freeze()
    try:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(read_entries, Port(bookie.planes["http"]), ledger)
            deadline = time.monotonic() + WAIT_S
            while not connected_to(silent.port):
                assert time.monotonic() < deadline
            bookie.signal(signal.SIGTERM)
            assert bookie.wait() == 0
            answer = asked.result()
    finally:
        silent.thaw()
        silent.kill()  # its metadata store is gone
    assert (answer.status, answer.text) == (
        503, "the bookie is stopping, and did not wait for this request; whether it had an effect is not known"
    )  # fmt: skip
    assert "Traceback" not in bookie.log_text()
    assert "the stop took too long" not in bookie.log_text()


def connected_to(port: int) -> bool:
    """Return whether a process of this machine is connected to this port of it."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[2].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)


def read_entries(port: Port, ledger: int) -> Answer:
    """Read the entries of a ledger over HTTP."""
    return port.get(f"/api/v1/ledger/read?ledger_id={ledger}")


def test_a_request_that_is_incomplete(bookies: Bookies) -> None:
    """It is refused in words, and the log has no traceback."""
    (bookie,) = bookies(1, **HTTP)
    address = Port(bookie.planes["http"]).address
    with socket.create_connection(address, timeout=30) as sock:
        sock.sendall(b"PUT /api/v1/bookie/state/readonly HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{")
        Port(bookie.planes["http"]).get("/livez")  # the event loop has seen both
        assert bookie.stop() == 0
        answer = http.client.HTTPResponse(sock)
        answer.begin()
        assert (answer.status, answer.read()) == (
            503, b"the bookie is stopping, and did not wait for this request; nothing was done"
        )  # fmt: skip
    assert "Traceback" not in bookie.log_text()
