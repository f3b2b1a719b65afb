"""Test that LMDB is the copy inside the lmdb package, and that the import fails with a remedy otherwise."""

import subprocess
import sys

import lmdb
import pytest

from bookie._fast.base import lmdb_c

REMEDY = "pip install 'lmdb>=3.0,<4'"

ABSENT = "import sys; sys.modules['lmdb'] = None"
CFFI = """
import lmdb, lmdb.cpython
lmdb.Environment = type('Environment', (), {})
"""
OTHER_LIBRARY = """
import lmdb, lmdb.cpython, importlib.util
from bookie._fast.base import crc
lmdb.cpython.__spec__ = importlib.util.find_spec('bookie._fast.base.crc')
"""
UNLOADED_LIBRARY = """
import lmdb, lmdb.cpython
lmdb.cpython.__spec__.origin = '/nowhere/lmdb.so'
"""


def test_version() -> None:
    """The version is 0.9, and the same as the package reports."""
    assert lmdb_c.version()[:2] == (0, 9)
    assert lmdb_c.version() == lmdb.version()


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        (ABSENT, "LMDB cannot be loaded"),
        (CFFI, "a second copy of LMDB"),
        (OTHER_LIBRARY, "exports no mdb09_version"),
        (UNLOADED_LIBRARY, "is imported but not a loaded library"),
    ],
)
def test_refuses_to_start_without_it(trouble: str, reason: str) -> None:
    """The import fails with a message that names the remedy, in a process of its own, as functions are loaded once."""
    program = f"{trouble}\nimport bookie._fast.base.lmdb_c"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith("ImportError:")
    assert reason in last
    assert REMEDY in last
