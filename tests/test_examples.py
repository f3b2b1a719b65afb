"""The examples of docs/examples and the Python in README.md run as they stand, against a real bookie."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from bookie.client import BookKeeper
from bookie.metadata.records.ledger_metadata import LedgerState
from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority
from tests.fixtures.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
Bookies = Callable[..., list[BookieProcess]]


def run(program: list[str]) -> str:
    """Standard output of a Python program that must end well and say nothing on standard error."""
    command = [sys.executable, "-W", "error", *program]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_examples(bookies: Bookies) -> None:
    """Each prints what its reader is told to expect."""
    (bookie,) = bookies()
    address = f"127.0.0.1:{bookie.port}"
    said = run(["docs/examples/one_bookie.py", address]).splitlines()
    assert said == ["entry 1: two", "entry 0: one", "entry 1: two", "entry 2: three", "the ledger is fenced"]
    bulk = run(["docs/examples/bulk.py", address])
    assert "100,000 entries are durable" in bulk
    assert bulk.endswith("sum 4,999,950,000, expected 4,999,950,000\n")


def test_the_example_of_ledgers(bookies: Bookies) -> None:
    """On three bookies that share an embedded metadata store."""
    owner, *_ = bookies(3)
    said = run(["docs/examples/ledgers.py", f"grpc://{owner.admin}"]).splitlines()
    assert said == ["0 b'one'", "1 b'two'", "2 b'three'", "a future: b'two'", "followed: 10000"]


@pytest.mark.thorough
def test_the_example_of_a_consumer_group(bookies: Bookies) -> None:
    """One of three processes is killed, and yet each ledger is read to its end by one of them."""
    owner, *_ = bookies(3)
    *died, last = run(["docs/examples/consumer_group.py", f"grpc://{owner.admin}"]).splitlines()
    assert set(died) <= {"orders-0 died: its ledgers go back"}
    assert last == "12000 entries of 12 ledgers"


@pytest.mark.thorough
def test_the_example_of_a_web_service(bookies: Bookies) -> None:
    """Events that are posted come out of the stream of a reader; a server that is stopped closes its ledger."""
    pytest.importorskip("fastapi", reason="needs: pip install fastapi")
    owner, *_ = bookies(3)
    uri, port = f"grpc://{owner.admin}", free_port()
    command = [sys.executable, "docs/examples/web_service.py", uri, str(port)]
    environment = {"PYTHONPATH": str(ROOT)}
    with (
        subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True) as server,
        closing(HTTPConnection("127.0.0.1", port, timeout=60)) as writer,
        closing(HTTPConnection("127.0.0.1", port, timeout=60)) as reader,
        ExitStack() as opened,
    ):
        assert server.stderr
        try:
            assert any("Uvicorn running" in line for line in iter(server.stderr.readline, ""))
            reader.request("GET", "/events?first=1")
            stream = opened.enter_context(reader.getresponse())
            for number in range(3):
                writer.request("POST", "/events", b"event %d" % number)
                response = writer.getresponse()
                assert (response.status, json.load(response)) == (201, {"id": number})
            assert [stream.readline(), stream.readline()] == [b"event 1\n", b"event 2\n"]
            writer.request("POST", "/events", bytes(6 << 20))
            assert writer.getresponse().status == 413
        finally:
            server.terminate()
        server.communicate(timeout=60)
    with BookKeeper(uri) as bk:
        (ledger,) = bk.list_ledgers()
        metadata = bk.ledger_metadata(ledger)
        assert (metadata.state, metadata.last_entry) == (LedgerState.CLOSED, 2)


def test_the_readme(bookies: Bookies) -> None:
    """The Python of README.md, on this bookie's port."""
    (bookie,) = bookies()
    (snippet,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert "3181" in snippet
    assert run(["-c", snippet.replace("3181", str(bookie.port))]) == "b'hello'\n[b'hello', b'world']\n"


def test_the_examples_of_security(new_bookies: Bookies, tmp_path: Path) -> None:
    """Each Python program of docs/security.md gets into a bookie that is configured as the text before it says."""
    text = (ROOT / "docs/security.md").read_text()
    jaas = text.partition("`/etc/bookie/jaas.conf`:\n\n")[2].partition("\n\nThe first")[0]
    (tmp_path / "jaas.conf").write_text(jaas)
    (tmp_path / "tokens").write_text("MAlwBo9v3hCnzVvQ8ep2CP5nrnSXMGpG\n")
    ca = Authority(tmp_path)
    ca.issue("bookie", hosts=["127.0.0.1"])
    ca.issue("client", unit="0:writer")
    here = text.replace("/etc/bookie/", f"{tmp_path}/")
    programs = re.findall(r"```python\n(.*?)```", here, re.DOTALL)
    assert len(programs) == 3
    for program, before in zip(programs, re.split(r"```python\n.*?```", here, flags=re.DOTALL), strict=False):
        settings = re.findall(r"^    (bookieAuth\w+|auth\w+|sasl\w+|tls\w+)=(.*)$", before, re.MULTILINE)
        (bookie,) = new_bookies(**dict(settings))
        bookie.start()
        assert run(["-c", program.replace("3181", str(bookie.port))]) == "b'hello'\n"
        assert "authenticated" in bookie.log_text()
