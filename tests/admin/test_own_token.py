"""The token that a bookie creates for its own user: it is found by that user only, and sent to no other process."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bookie.admin_port.channel import read_token
from bookie.admin_port.own_token import NAME, Guide, Signpost, make
from bookie.client import BookKeeper
from bookie.errors import SecurityError
from bookie.metadata import open_driver
from tests.admin.http.conftest import Port
from tests.fixtures.bookies import ROOT, BookieProcess
from tests.fixtures.ports import free_port

pytestmark = pytest.mark.leaks("gRPC keeps its own threads and their descriptors as long as the process lives")

OTHER = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")


def find(target: str) -> str | None:
    """Find a token as a newly started program does."""
    return Guide(target).path()


def other(program: str, *words: str) -> "subprocess.Popen[str]":
    """Start a Python program that continues as another user of this machine once it is loaded."""
    given = f"""
import os, sys
from pathlib import Path
import encodings.idna
import bookie.metadata.key_value.driver, bookie.metadata.key_value.remote
from bookie.errors import SecurityError
from bookie.metadata import open_driver
from bookie.admin_port.own_token import Signpost
import urllib.error, urllib.request
os.setgroups([])
os.setresgid({OTHER}, {OTHER}, {OTHER})
os.setresuid({OTHER}, {OTHER}, {OTHER})
{program}
"""
    return subprocess.Popen(
        [sys.executable, "-c", given, *words], cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


@pytest.mark.thorough
def test_it_is_made_once_and_is_ours_alone(bookies: Callable[..., list[BookieProcess]]) -> None:
    """It is created at the first start with mode 600 and kept over restarts; clients of the store and the admin port
    need no configuration.
    """
    (bookie,) = bookies(1)
    file = bookie.ledgers / NAME
    token = read_token(str(file))
    assert (file.stat().st_mode & 0o777, find(bookie.admin)) == (0o600, str(file))
    assert find(bookie.admin.replace("127.0.0.1", "localhost")) == str(file)
    guide = Guide(bookie.admin)
    assert guide.path() == str(file)
    with BookKeeper(f"grpc://{bookie.admin}") as client:
        with client.create_ledger(ensemble_size=1, write_quorum_size=1, ack_quorum_size=1) as ledger:
            ledger.append(b"one")
        assert bookie.restart().log_text().count("created a token for processes of this user") == 1
        with client.open_ledger(ledger.id) as reader:
            assert [bytes(entry.data) for batch in reader.batches() for entry in batch] == [b"one"]
    assert read_token(str(file)) == token
    assert bookie.stop() == 0
    assert token not in bookie.log_text()
    assert find(bookie.admin) is None  # the file of a stopped bookie belongs to no port
    assert guide.path() is None  # also for a program that has used it before
    bookie.new_programs = True  # so that the process is our child, and stays until it is waited for
    bookie.start()
    assert guide.path() == str(file)
    bookie.signal(signal.SIGKILL)
    os.waitid(os.P_PID, bookie.pid, os.WEXITED | os.WNOWAIT)  # the process has ended, but was not waited for
    assert guide.path() is None


@as_root
def test_other_users_of_the_machine_get_no_metadata(bookies: Callable[..., list[BookieProcess]]) -> None:
    """Another user reads and changes no ledger, over gRPC or HTTP; metrics and probes stay open."""
    (bookie,) = bookies(1, httpServerEnabled="true", httpServerPort="0")
    program = """
admin, http = sys.argv[1:]
try:
    open_driver(f"grpc://{admin}").start()
except SecurityError as error:
    print(error)
for method, path in (("GET", "/api/v1/ledger/list"), ("DELETE", "/api/v1/ledger/delete?ledger_id=0"),
                     ("PUT", "/api/v1/bookie/gc"), ("GET", "/metrics"), ("GET", "/livez")):
    try:
        print(urllib.request.urlopen(urllib.request.Request(f"http://{http}{path}", method=method)).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""
    with other(program, bookie.admin, bookie.planes["http"]) as theirs:
        said = theirs.communicate()[0].splitlines()
    assert "no token was sent; use the token of admin.token" in said[0]
    assert said[1:] == ["401", "401", "401", "200", "200"]
    ours = Port(bookie.planes["http"])
    assert ours.get("/api/v1/ledger/list").status == 200
    assert ours.get("/api/console/bookie").json["role"] == "admin"
    with pytest.raises(PermissionError), _being(OTHER):
        (bookie.ledgers / NAME).read_bytes()


@as_root
def test_a_planted_answer_gets_no_token(tmp_path: Path) -> None:
    """Another user who takes the name of a port first, and answers with the path of our file, gets no token: neither
    from us, because the file is not theirs, nor from a third user.
    """
    port = free_port()
    ours = make(tmp_path)
    program = """
post = Signpost("127.0.0.1", int(sys.argv[1]), Path(sys.argv[2]))
post.start()
print("planted", flush=True)
sys.stdin.read()
post.stop()
"""
    with other(program, str(port), str(ours)) as theirs:
        assert theirs.stdout is not None
        assert theirs.stdin is not None
        assert theirs.stdout.readline() == "planted\n"
        assert find(f"127.0.0.1:{port}") is None
        with _being(OTHER - 1):
            assert find(f"127.0.0.1:{port}") is None
        taken = Signpost("127.0.0.1", port, ours)
        taken.start()  # it logs the problem and continues
        taken.stop()
        theirs.stdin.close()
    with _post(port, ours):
        assert find(f"127.0.0.1:{port}") == str(ours)
        with _being(OTHER):
            assert find(f"127.0.0.1:{port}") is None


def test_only_a_file_of_the_right_mode_counts(tmp_path: Path) -> None:
    """A file that others can read, a link and a missing file are not used; `make` replaces a file that is not ours."""
    port, file = free_port(), make(tmp_path)
    with _post(port, file):
        assert find(f"127.0.0.1:{port}") == str(file)
        assert [find(f"{host}:{port}") for host in ("10.0.0.1", "example.org")] == [None, None]
        file.chmod(0o640)
        assert find(f"127.0.0.1:{port}") is None
        old = read_token(str(file))
        assert make(tmp_path) == file
        assert read_token(str(file)) != old
        assert find(f"127.0.0.1:{port}") == str(file)
        file.rename(tmp_path / "moved")
        file.symlink_to(tmp_path / "moved")
        assert find(f"127.0.0.1:{port}") is None
    assert find(f"127.0.0.1:{port}") is None


@pytest.mark.thorough
def test_several_bookies_of_one_machine(bookies: Callable[..., list[BookieProcess]]) -> None:
    """Each port has its own token; the token of one does not open another."""
    one, two = bookies(2)
    found = [find(bookie.admin) for bookie in (one, two)]
    assert found == [str(bookie.ledgers / NAME) for bookie in (one, two)]
    with pytest.raises(SecurityError, match="the token is unknown"):
        open_driver(f"grpc://{one.admin}?token={found[1]}").start()


@pytest.mark.thorough
def test_where_the_network_is_closed_nothing_is_wanted(bookies: Callable[..., list[BookieProcess]]) -> None:
    """`adminInsecureAllowed=true` without tokens lets everyone in, as documented."""
    (bookie,) = bookies(1, adminInsecureAllowed="true")
    (bookie.ledgers / NAME).unlink()
    driver = open_driver(f"grpc://{bookie.admin}")
    driver.start()
    driver.stop()


@contextmanager
def _post(port: int, file: Path) -> Iterator[None]:
    one = Signpost("127.0.0.1", port, file)
    one.start()
    try:
        yield
    finally:
        one.stop()
        one.stop()


@contextmanager
def _being(user: int) -> Iterator[None]:
    """Act as another user for files and sockets, in this thread."""
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
