"""Python workers that Spark no longer needs."""

import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed (make spark)", exc_type=ImportError)
ROOT = Path(__file__).resolve().parents[2]
WORKER = """
import {imported}
import sys

def main(infile, outfile):
    task = infile.read(1)
    outfile.write(task or b"the stream has ended")
    if not task:
        sys.exit(-1)
"""
"""What PySpark's workers do, with tasks of one byte."""


@pytest.fixture
def short() -> Iterator[str]:
    """A directory with a short name."""
    with tempfile.TemporaryDirectory() as made:
        yield made


@pytest.mark.parametrize(("imported", "silent"), [("bookie.spark", True), ("sys", False)])
def test_an_idle_worker_whose_socket_is_closed(imported: str, silent: bool, tmp_path: Path, short: str) -> None:
    """It ends and prints nothing if its task was one of this package; else PySpark prints a traceback."""
    (tmp_path / "pyspark_worker.py").write_text(WORKER.format(imported=imported))
    variables = {
        "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), *filter(None, sys.path)]),
        "PYTHON_UNIX_DOMAIN_ENABLED": "true",
        "PYTHON_WORKER_FACTORY_SOCK_DIR": short,  # an address of a socket has at most 107 bytes
        "PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1",
        "SPARK_REUSE_WORKER": "1",
    }
    command = [sys.executable, "-m", "pyspark.daemon", "pyspark_worker"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=os.environ | variables, stdin=pipe, stdout=pipe, stderr=pipe) as daemon:
        assert daemon.stdout is not None
        (size,) = struct.unpack(">i", daemon.stdout.read(4))
        with socket.socket(socket.AF_UNIX) as spark:
            spark.connect(daemon.stdout.read(size))
            (worker,) = struct.unpack(">i", spark.recv(4, socket.MSG_WAITALL))
            ended = os.pidfd_open(worker)
            spark.sendall(b"1")
            assert spark.recv(1) == b"1"
        try:
            select.select([ended], [], [])
        finally:
            os.close(ended)
        _, said = daemon.communicate()
    assert said.decode().count("BrokenPipeError") == (0 if silent else 1)
    assert not (silent and said)
