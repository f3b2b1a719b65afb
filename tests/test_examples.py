"""The examples of docs/examples and the Python in README.md run as they stand, against a real bookie."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.fixtures.bookies import BookieProcess
from tests.fixtures.certificates import Authority

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
